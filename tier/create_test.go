package tier_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"firn/pkg/stream"
	"firn/tier"
)

func TestCreateIsRepeatable(t *testing.T) {
	r := newRig(t, tier.Options{})
	ttl := func(n uint64) stream.Lifetime { return stream.Lifetime{Sliding: true, TTL: n} }
	until := func(s int64) stream.Lifetime {
		return stream.Lifetime{At: time.UnixMilli(r.clock.Load()).Add(time.Duration(s) * time.Second)}
	}
	src := r.create("source", "text/plain", "0123456789").Tail
	other := stream.Offset{Life: src.Life, Position: 4}
	at5 := stream.Offset{Life: src.Life, Position: 5}
	for i, tt := range []struct {
		what          string
		first, second tier.CreateRequest
		want          error
	}{
		{"alike", tier.CreateRequest{}, tier.CreateRequest{}, nil},
		{"the default spelt out", tier.CreateRequest{}, tier.CreateRequest{ContentType: octets}, nil},
		{"type in capitals with a parameter", tier.CreateRequest{ContentType: "text/plain"}, tier.CreateRequest{ContentType: "Text/PLAIN; charset=utf-8"}, nil},
		{"other type", tier.CreateRequest{ContentType: "text/plain"}, tier.CreateRequest{}, stream.ErrExists},
		{"other body", tier.CreateRequest{Body: []byte("a")}, tier.CreateRequest{Body: []byte("b")}, nil},
		{"body that is no JSON", tier.CreateRequest{ContentType: json}, tier.CreateRequest{ContentType: json, Body: []byte("{")}, nil},
		{"closed", tier.CreateRequest{Closed: true}, tier.CreateRequest{Closed: true}, nil},
		{"not closed", tier.CreateRequest{Closed: true}, tier.CreateRequest{}, stream.ErrExists},
		{"now closed", tier.CreateRequest{}, tier.CreateRequest{Closed: true}, stream.ErrExists},
		{"same TTL", tier.CreateRequest{Lifetime: ttl(9)}, tier.CreateRequest{Lifetime: ttl(9)}, nil},
		{"other TTL", tier.CreateRequest{Lifetime: ttl(9)}, tier.CreateRequest{Lifetime: ttl(8)}, stream.ErrExists},
		{"no TTL", tier.CreateRequest{Lifetime: ttl(9)}, tier.CreateRequest{}, stream.ErrExists},
		{"same end", tier.CreateRequest{Lifetime: until(9)}, tier.CreateRequest{Lifetime: until(9)}, nil},
		{"TTL of the same length", tier.CreateRequest{Lifetime: until(9)}, tier.CreateRequest{Lifetime: ttl(9)}, stream.ErrExists},
		{"fork, both at the tail", fork("source", nil, 0), fork("source", nil, 0), nil},
		{"fork, no offset again", fork("source", &at5, 0), fork("source", nil, 0), nil},
		{"fork, offset again", fork("source", &at5, 0), fork("source", &at5, 0), nil},
		{"fork, the tail spelt out", fork("source", nil, 0), fork("source", &src, 0), nil},
		{"fork, other offset", fork("source", &at5, 0), fork("source", &other, 0), stream.ErrExists},
		{"fork, other life", fork("source", &at5, 0), fork("source", &stream.Offset{Life: 1, Position: 5}, 0), stream.ErrExists},
		{"fork, sub-offset again", fork("source", &at5, 2), fork("source", &at5, 2), nil},
		{"fork, same position otherwise", fork("source", &at5, 0), fork("source", &other, 1), stream.ErrExists},
		{"fork, other source", fork("source", &at5, 0), fork("nope", &at5, 0), stream.ErrExists},
		{"fork over a stream", tier.CreateRequest{ContentType: "text/plain"}, fork("source", nil, 0), stream.ErrExists},
		{"stream over a fork", fork("source", nil, 0), tier.CreateRequest{ContentType: "text/plain"}, stream.ErrExists},
	} {
		tt.first.Name, tt.second.Name = named(fmt.Sprint(i)), named(fmt.Sprint(i))
		was, created, err := r.Create(bg, tt.first)
		if err != nil || !created {
			t.Fatalf("%s: first %v, %v", tt.what, created, err)
		}
		is, created, err := r.Create(bg, tt.second)
		if created || !errors.Is(err, tt.want) || err == nil && (is.ID != was.ID || is.Tail != was.Tail) {
			t.Errorf("%s: created %v, %v, want %v; stream %+v, was %+v", tt.what, created, err, tt.want, is, was)
		}
	}
}

func fork(source string, at *stream.Offset, sub uint64) tier.CreateRequest {
	return tier.CreateRequest{Fork: &tier.ForkRequest{Source: named(source), Offset: at, SubOffset: sub}}
}

func TestForkIsRepeatableWhenItsSourceIsGone(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("source", json, `[1,2,3]`)
	o := stream.Offset{Life: r.head("source").Tail.Life, Position: 2}
	first := fork("source", &o, 1)
	first.Name = named("fork")
	was, _, err := r.Create(bg, first)
	r.must(err)
	r.must(r.Delete(bg, named("source")))
	is, created, err := r.Create(bg, first)
	if err != nil || created || is.ID != was.ID || is.Tail.Position != 4 {
		t.Errorf("repeated: %+v, created %v, %v", is, created, err)
	}
	first.Name = named("another")
	_, _, err = r.Create(bg, first)
	r.is(err, stream.ErrForkSourceGone, "another fork of the deleted source")
	_, _, err = r.Create(bg, tier.CreateRequest{Name: named("source")})
	r.is(err, stream.ErrNameBlocked, "the deleted source's name")
}

// A repeated PUT used to be compared only, also when the stream had expired before
// the comparison: then it made an empty stream and lost the body.
func TestCreateKeepsTheBodyWhenTheStreamExpiresMeanwhile(t *testing.T) {
	for _, ct := range []string{octets, json} {
		r := newRig(t, tier.Options{})
		end := time.UnixMilli(r.clock.Load() + 1000)
		request := tier.CreateRequest{Name: named("a"), ContentType: ct, Lifetime: stream.Lifetime{At: end}, Body: []byte("123")}
		was, _, err := r.Create(bg, request)
		r.must(err)
		r.clock.Store(end.UnixMilli() - 1)
		r.tick.Store(1) // it is found alive, and expired right afterwards
		request.Lifetime = stream.Lifetime{}
		is, created, err := r.Create(bg, request)
		r.tick.Store(0)
		if err != nil || !created || is.ID == was.ID || is.Tail.Position == 0 {
			t.Errorf("%s: created %v with tail %v, %v; want a new stream with the body", ct, created, is.Tail, err)
		}
	}
}

func TestFirstBody(t *testing.T) {
	r := newRig(t, tier.Options{})
	for i, tt := range []struct {
		contentType, body, want string
		bad                     bool
	}{
		{octets, "", "", false},
		{octets, "[]", "[]", false},
		{json, "", "", false},
		{json, "[]", "", false},
		{json, " [1 , [ 2 ]]", "1\n[2]\n", false},
		{json, `{"a" : 1}`, "{\"a\":1}\n", false},
		{json, "[1,", "", true},
		{json, " ", "", true},
	} {
		id := fmt.Sprint(i)
		_, created, err := r.Create(bg, tier.CreateRequest{Name: named(id), ContentType: tt.contentType, Body: []byte(tt.body)})
		var bad *stream.JSONError
		if errors.As(err, &bad) != tt.bad || created == tt.bad {
			t.Errorf("%s %q: created %v, %v", tt.contentType, tt.body, created, err)
		}
		if !tt.bad {
			r.readable(id, tt.want, 0)
		}
	}
}
