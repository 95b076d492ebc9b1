package tier_test

import (
	"fmt"
	"testing"

	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
)

func TestForksOfEveryTier(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(2*readBytes + 7)
	n := uint64(len(content))
	for cut := uint64(0); cut <= n; cut += 20 {
		source := fmt.Sprintf("source %d", cut)
		r.create(source, octets, content)
		r.cool(source, cut)
		for _, at := range []uint64{0, 1, cut, cut + 1, n} {
			id := fmt.Sprintf("fork of %d at %d", cut, at)
			if _, err := r.Head(bg, named(id)); err == nil {
				continue // two of the positions are one
			}
			r.fork(id, source, at)
			r.readable(id, content[:at], 0)
			r.append(id, "own bytes of the fork")
			r.readable(id, content[:at]+"own bytes of the fork", 0)
			r.cool(id, at+3)
			r.readable(id, content[:at]+"own bytes of the fork", 0)
		}
		r.append(source, "later")
		r.readable(source, content+"later", 0)
	}
}

func TestForksOutliveTheirSource(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(2 * readBytes)
	r.create("source", octets, content)
	r.cool("source", readBytes)
	r.fork("fork", "source", readBytes+10)
	r.fork("fork of the fork", "fork", readBytes-10)
	r.must(r.Delete(bg, named("source")))
	_, err := r.Head(bg, named("source"))
	r.is(err, stream.ErrGone, "deleted source")
	r.must(r.Delete(bg, named("fork")))
	r.append("fork of the fork", "!")
	r.readable("fork of the fork", content[:readBytes-10]+"!", 0)
	r.must(r.Delete(bg, named("fork of the fork")))
	for _, id := range []string{"source", "fork", "fork of the fork"} {
		_, err := r.Head(bg, named(id))
		r.is(err, stream.ErrNotFound, "%s, which nothing needs any more", id)
	}
}

func TestChainOf200Forks(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := "0"
	r.create("0", octets, content)
	for i := 1; i <= 200; i++ {
		source, id := fmt.Sprint(i-1), fmt.Sprint(i)
		tail := uint64(len(content))
		if i%3 == 0 && tail > 1 { // leave the last byte behind
			tail--
		}
		content = content[:tail]
		r.fork(id, source, tail)
		added := letters(i%4 + 1)
		r.append(id, added)
		content += added
		switch i % 5 {
		case 0: // all cold
			r.cool(id, uint64(len(content)))
		case 1: // half cold
			r.cool(id, tail+1)
		}
	}
	for pos := uint64(0); pos <= uint64(len(content)); pos += 11 {
		if got := r.rest("200", pos); got != content[pos:] {
			t.Fatalf("read at %d: %q, want %q", pos, got, content[pos:])
		}
	}
	for i := 199; i >= 0; i-- { // every source goes, the last fork keeps all it needs
		r.must(r.Delete(bg, named(fmt.Sprint(i))))
	}
	if got := r.rest("200", 0); got != content {
		t.Errorf("without its sources: %q, want %q", got, content)
	}
}

func TestForkRefusals(t *testing.T) {
	r := newRig(t, tier.Options{})
	src := r.create("a", json, `[1,22,333]`) // boundaries 0 2 5 9
	r.cool("a", 5)
	r.create("gone", octets, "x")
	r.fork("keeps it", "gone", 1)
	r.must(r.Delete(bg, named("gone")))
	r.create("trimmed", octets, "0123456789")
	r.publish("trimmed", 5, "")
	at := func(id string, p uint64) *stream.Offset {
		o := stream.Offset{Position: p}
		if i, err := r.Head(bg, named(id)); err == nil {
			o.Life = i.Tail.Life
		}
		return &o
	}
	for _, tt := range []struct {
		what, contentType string
		f                 tier.ForkRequest
		want              error
	}{
		{"no source", "", tier.ForkRequest{Source: named("nope")}, stream.ErrForkSourceNotFound},
		{"no bucket", "", tier.ForkRequest{Source: stream.Name{Bucket: "none", ID: "a"}}, stream.ErrForkSourceNotFound},
		{"source deleted", "", tier.ForkRequest{Source: named("gone")}, stream.ErrForkSourceGone},
		{"other type", "text/plain", tier.ForkRequest{Source: named("a")}, stream.ErrContentType},
		{"inside a cold message", "", tier.ForkRequest{Source: named("a"), Offset: at("a", 3)}, stream.ErrOffsetNotBoundary},
		{"inside a hot message", "", tier.ForkRequest{Source: named("a"), Offset: at("a", 8)}, stream.ErrOffsetNotBoundary},
		{"past the tail", "", tier.ForkRequest{Source: named("a"), Offset: at("a", 10)}, stream.ErrOffsetPastTail},
		{"other life", "", tier.ForkRequest{Source: named("a"), Offset: &stream.Offset{Life: src.Tail.Life + 1, Position: 2}}, stream.ErrOffsetOtherLife},
		{"sub-offset past the data", "", tier.ForkRequest{Source: named("a"), Offset: at("a", 0), SubOffset: 4}, stream.ErrForkSubOffset},
		{"sub-offset past the tail", "", tier.ForkRequest{Source: named("a"), SubOffset: 1}, stream.ErrForkSubOffset},
		{"sub-offset past all", "", tier.ForkRequest{Source: named("a"), Offset: at("a", 2), SubOffset: 1 << 63}, stream.ErrForkSubOffset},
	} {
		_, _, err := r.Create(bg, tier.CreateRequest{Name: named("new"), ContentType: tt.contentType, Fork: &tt.f})
		r.is(err, tt.want, "%s", tt.what)
	}
	_, _, err := r.Create(bg, tier.CreateRequest{Name: named("new"), Fork: &tier.ForkRequest{Source: named("trimmed"), Offset: at("trimmed", 4)}})
	r.trimmed(err, 5, "fork below the earliest offset")
	if _, err := r.Head(bg, named("new")); err == nil {
		t.Error("a refused fork exists")
	}
}

func TestForkSubOffsetsAtTheirLimit(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("bytes", octets, letters(3*readBytes))
	// Messages of 4 bytes: 12 of them are readBytes.
	body := "["
	for i := range 40 {
		body += fmt.Sprintf("%d,", 100+i)
	}
	r.create("json", json, body[:len(body)-1]+"]")
	r.cool("json", 80)
	r.create("odd", json, `[1000,2000,3000,4000,5000,6000,7000,8000,9000,1000,2000,3000,4000,5000,6000,7000,8000,9000,9000]`)
	for _, tt := range []struct {
		source     string
		sub, lands uint64 // 0: refused
	}{
		{"bytes", 1, 1}, {"bytes", readBytes, readBytes}, {"bytes", readBytes + 1, 0},
		{"json", 1, 4}, {"json", 12, 48}, {"json", 13, 0}, {"json", 24, 0}, {"json", 40, 0},
		{"odd", 9, 45}, {"odd", 10, 0},
	} {
		for _, anchor := range []uint64{0, 40} {
			id := fmt.Sprint(tt, anchor)
			o := stream.Offset{Life: r.head(tt.source).Tail.Life, Position: anchor}
			i, _, err := r.Create(bg, tier.CreateRequest{Name: named(id), Fork: &tier.ForkRequest{Source: named(tt.source), Offset: &o, SubOffset: tt.sub}})
			if tt.lands == 0 {
				r.is(err, stream.ErrForkSubOffset, "%s, sub-offset %d from %d", tt.source, tt.sub, anchor)
			} else if err != nil || i.Tail.Position != anchor+tt.lands {
				t.Errorf("%s, sub-offset %d from %d: tail %v, %v; want %d", tt.source, tt.sub, anchor, i.Tail, err, anchor+tt.lands)
			}
		}
	}
	// A message that is longer than the limit is past it.
	r.create("long", json, `["`+letters(readBytes)[2:]+`xxxx",1]`)
	_, _, err := r.Create(bg, tier.CreateRequest{Name: named("fork of long"), Fork: &tier.ForkRequest{Source: named("long"), Offset: &stream.Offset{}, SubOffset: 1}})
	r.is(err, stream.ErrForkSubOffset, "a message of more than the limit")
}

func TestForkBoundaryWhileTheStoreIsAway(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", json, `[1,2,3]`)
	r.cool("a", 6)
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before})
	o := stream.Offset{Life: r.head("a").Tail.Life, Position: 2}
	_, _, err := r.Create(bg, tier.CreateRequest{Name: named("f"), Fork: &tier.ForkRequest{Source: named("a"), Offset: &o}})
	r.is(err, stream.ErrColdUnavailable, "fork whose boundary cannot be checked")
}
