package tier_test

import (
	"testing"

	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
)

// What lies before a lost object is read; only then comes the trouble.
func TestPageEndsBeforeALostObject(t *testing.T) {
	for _, kind := range []string{octets, "application/json"} {
		r := newRig(t, tier.Options{})
		r.create("a", kind, `"0123456789"`)
		first := r.head("a").Tail.Position
		r.cool("a", first)
		r.cool("a", r.append("a", `"abcdefghij"`))
		d, err := r.Describe(bg, named("a"))
		r.must(err)
		r.faults.Script(fault.Fault{Op: fault.Get, Key: d.Segments[1].Object, Kind: fault.Hide, Times: fault.Always})
		p, err := r.Read(bg, named("a"), stream.Beginning)
		r.must(err)
		if p.Next.Position != first || p.UpToDate {
			t.Errorf("%s: the page ends at %d, up to date %t; want %d, false", kind, p.Next.Position, p.UpToDate, first)
		}
		_, err = r.Read(bg, named("a"), stream.At(p.Next))
		r.is(err, stream.ErrColdUnavailable, "%s: read of the lost object", kind)
		p.Release()
	}
}
