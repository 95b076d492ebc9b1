package tier_test

import (
	"fmt"
	"strings"
	"testing"

	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
)

func TestReadsFromEveryOffsetAcrossTiers(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(3*readBytes + 5)
	n := uint64(len(content))
	type marks struct{ cut, sealed uint64 }
	seen := map[marks]bool{}
	for _, cut := range []uint64{0, 1, readBytes - 1, readBytes, readBytes + 1, n - 1, n} {
		for _, sealed := range []uint64{cut, 2 * readBytes, n} {
			if sealed < cut || seen[marks{cut, sealed}] {
				continue
			}
			seen[marks{cut, sealed}] = true
			id := fmt.Sprintf("cut %d, sealed %d", cut, sealed)
			r.create(id, octets, content[:10])
			for i := 10; i < len(content); i += 7 {
				r.append(id, content[i:min(i+7, len(content))])
			}
			if cut > 0 {
				r.cool(id, cut/2+1) // two segments or one
			}
			r.cool(id, cut)
			r.seal(id, sealed)
			r.readable(id, content, 0)
		}
	}
}

func TestReadsJSONFromEveryBoundaryAcrossTiers(t *testing.T) {
	r := newRig(t, tier.Options{})
	// Short messages, one longer than a frame, one longer than a page, the shortest.
	messages := []string{`1`, `{"a":2}`, `"` + strings.Repeat("f", frameBytes+3) + `"`, `33`, `"` + strings.Repeat("p", readBytes+9) + `"`, `4`, `5`, `null`, `"` + strings.Repeat("q", 2*readBytes) + `"`, `6`}
	content := strings.Join(messages, "\n") + "\n"
	var ends []uint64
	for end := 0; end < len(content); {
		end += strings.IndexByte(content[end:], '\n') + 1
		ends = append(ends, uint64(end))
	}
	for i, cut := range ends {
		for j := i; j < len(ends); j += 3 {
			id := fmt.Sprintf("cut %d, sealed %d", cut, ends[j])
			r.create(id, json, "["+strings.Join(messages[:2], ",")+"]")
			for _, m := range messages[2:] {
				r.append(id, " "+m+" ")
			}
			if i > 0 {
				r.cool(id, ends[i/2])
			}
			r.cool(id, cut)
			r.seal(id, ends[j])
			r.readable(id, content, 0)
		}
	}
}

func TestPageIsAtMostReadBytes(t *testing.T) {
	r := newRig(t, tier.Options{})
	for _, n := range []int{readBytes - 1, readBytes, readBytes + 1} {
		for _, where := range []string{"hot", "cold", "both"} {
			id := fmt.Sprint(where, n)
			r.create(id, octets, letters(n))
			switch where {
			case "cold":
				r.cool(id, uint64(n))
			case "both":
				r.cool(id, uint64(n/2))
			}
			p, err := r.page(id, 0)
			r.must(err)
			if len(p.Data) != min(n, readBytes) || p.UpToDate != (n <= readBytes) {
				t.Errorf("%s: page of %d bytes, up to date %v", id, len(p.Data), p.UpToDate)
			}
			if want := map[string]tier.Tier{"hot": tier.Hot, "cold": tier.Cold, "both": tier.Cold}[where]; p.Tier != want {
				t.Errorf("%s: page is from %v, want %v", id, p.Tier, want)
			}
			p.Release()
			p.Release()
			if p.Data != nil {
				t.Errorf("%s: data after release", id)
			}
		}
	}
}

func TestPageGrowsForOneMessageAlone(t *testing.T) {
	r := newRig(t, tier.Options{})
	long := `"` + strings.Repeat("x", readBytes) + `"`
	for _, where := range []string{"hot", "cold"} {
		for _, after := range []string{"", ",1,2,3"} {
			id := where + after
			r.create(id, json, "["+long+after+"]")
			if where == "cold" {
				r.cool(id, r.head(id).Tail.Position)
			}
			p, err := r.page(id, 0)
			r.must(err)
			if string(p.Data) != long+"\n" || p.UpToDate != (after == "") {
				t.Errorf("%s: page %q, up to date %v; want the first message alone", id, p.Data, p.UpToDate)
			}
			p.Release()
		}
	}
}

func TestColdPageTakesOneGet(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, letters(4*readBytes))
	r.cool("a", 4*readBytes)
	before := r.faults.Calls(fault.Get)
	p, err := r.page("a", readBytes/2)
	r.must(err)
	p.Release()
	if n := r.faults.Calls(fault.Get) - before; n != 1 {
		t.Errorf("%d GETs, want 1", n)
	}
}

func TestOffsetsThatAreNotOfTheStream(t *testing.T) {
	r := newRig(t, tier.Options{})
	old := r.create("a", octets, "0123456789")
	r.must(r.Delete(bg, named("a")))
	is := r.create("a", octets, "abcdefghij")
	r.cool("a", 5)
	for what, tt := range map[string]struct {
		start stream.Start
		want  error
	}{
		"of the predecessor":          {stream.At(old.Tail), stream.ErrOffsetOtherLife},
		"of the predecessor, first":   {stream.At(stream.Offset{Life: old.Tail.Life}), stream.ErrOffsetOtherLife},
		"one past the tail":           {stream.At(stream.Offset{Life: is.Tail.Life, Position: 11}), stream.ErrOffsetPastTail},
		"the largest":                 {stream.At(stream.Offset{Life: 9_999_999_999_999_999, Position: 9_999_999_999_999_999}), stream.ErrOffsetPastTail},
		"the tail":                    {stream.At(is.Tail), nil},
		"now":                         {stream.Now, nil},
		"beginning":                   {stream.Beginning, nil},
		"all zero, which is any life": {stream.At(stream.Offset{}), nil},
	} {
		p, err := r.Read(bg, named("a"), tt.start)
		r.is(err, tt.want, "read %s", what)
		p.Release()
		f, err := r.Follow(bg, named("a"), tt.start)
		r.is(err, tt.want, "follow %s", what)
		if err == nil {
			f.Close()
		}
	}
	_, err := r.Read(bg, named("b"), stream.Beginning)
	r.is(err, stream.ErrNotFound, "no stream")
	_, err = r.Read(bg, stream.Name{Bucket: "nope", ID: "a"}, stream.Beginning)
	r.is(err, stream.ErrBucketNotFound, "no bucket")
}

func TestTrimmedOffsetsAreGoneInEveryTier(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(2 * readBytes)
	for _, cut := range []uint64{0, 10, 30, 31, 2*readBytes - 1} {
		for _, sealed := range []uint64{cut, 2 * readBytes} {
			id := fmt.Sprintf("cut %d, sealed %d", cut, sealed)
			r.create(id, octets, content)
			r.cool(id, cut)
			r.seal(id, sealed)
			r.publish(id, 30, "snap")
			r.readable(id, content, 30)
			_, err := r.Read(bg, named(id), stream.Beginning)
			r.trimmed(err, 30, "%s: read from the beginning", id)
			r.append(id, "more")
			r.readable(id, content+"more", 30)
		}
	}
}

func TestColdReadsFailWhileTheStoreIsAwayAndHotOnesDoNot(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(3 * readBytes)
	r.create("a", octets, content)
	r.cool("a", readBytes+10)
	r.faults.Script(fault.Fault{Kind: fault.Before, Times: fault.Always})
	if got := r.rest("a", readBytes+10); got != content[readBytes+10:] {
		t.Errorf("hot bytes: %q", got)
	}
	for _, pos := range []uint64{0, readBytes + 9} {
		_, err := r.page("a", pos)
		r.is(err, stream.ErrColdUnavailable, "read at %d", pos)
	}
	r.faults.Clear()
	r.readable("a", content, 0)
}

// An object that is missing is looked for again under a record of now, once.
func TestMissingObjectIsNeverAShorterAnswer(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, letters(2*readBytes))
	r.cool("a", 2*readBytes)
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Hide})
	if got := r.rest("a", 0); got != letters(2*readBytes) {
		t.Errorf("after one miss: %q", got)
	}
	r.create("b", octets, letters(10))
	r.cool("b", 10)
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Hide, Times: fault.Always})
	_, err := r.page("b", 0)
	r.is(err, cold.ErrMissing, "read of a lost object")
	r.is(err, stream.ErrColdUnavailable, "read of a lost object")
}

// A boundary in the cold range that only bytes can tell is not guessed.
func TestBoundaryCheckNeedsTheStore(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", json, `[1,2,3,4]`)
	r.cool("a", 8)
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Times: 2})
	for _, pos := range []uint64{2, 3} {
		_, err := r.page("a", pos)
		r.is(err, stream.ErrColdUnavailable, "read at %d while the store is away", pos)
	}
	r.readable("a", "1\n2\n3\n4\n", 0)
}
