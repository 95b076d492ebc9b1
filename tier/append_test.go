package tier_test

import (
	"errors"
	"testing"

	"firn/pkg/stream"
	"firn/tier"
)

func TestAppendOfBadJSONChangesNothing(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", json, `[1]`)
	seq := "1"
	for _, body := range []string{`[2,3,`, `[2,{"a":}]`, `2 3`, "[2,\xff]", `[2,"\x00"]`, ``, `[]`, " ", `[2]]`} {
		_, err := r.Append(bg, tier.AppendRequest{
			Name: named("a"), ContentType: json, Body: []byte(body), Seq: &seq,
			Producer: &stream.Producer{ID: "p"},
		})
		if err == nil {
			t.Errorf("%q was taken", body)
		}
	}
	r.readable("a", "1\n", 0)
	// Neither the sequence nor the producer has moved.
	a, err := r.Append(bg, tier.AppendRequest{
		Name: named("a"), ContentType: json, Body: []byte(`[2,3]`), Seq: &seq, Producer: &stream.Producer{ID: "p"},
	})
	if err != nil || a.Duplicate || a.Tail.Position != 6 {
		t.Errorf("append after refusals: %+v, %v", a, err)
	}
	r.readable("a", "1\n2\n3\n", 0)
}

func TestAppendOfAnEmptyArrayDoesNotClose(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", json, `[1]`)
	_, err := r.Append(bg, tier.AppendRequest{Name: named("a"), ContentType: json, Body: []byte(`[]`), Close: true})
	r.is(err, stream.ErrEmptyArray, "close with an empty array")
	if r.head("a").Closed {
		t.Error("the stream is closed")
	}
}

func TestProducerRetryAfterTheClose(t *testing.T) {
	r := newRig(t, tier.Options{})
	for _, ct := range []string{octets, json} {
		id := ct
		r.create(id, ct, "")
		request := func(seq uint64, body string, closes bool) tier.AppendRequest {
			return tier.AppendRequest{
				Name: named(id), ContentType: ct, Body: []byte(body), Close: closes,
				Producer: &stream.Producer{ID: "p", Epoch: 1, Seq: seq},
			}
		}
		_, err := r.Append(bg, request(0, "1", false))
		r.must(err)
		first, err := r.Append(bg, request(1, "2", true))
		if err != nil || !first.Closed {
			t.Fatalf("close: %+v, %v", first, err)
		}
		for range 2 {
			again, err := r.Append(bg, request(1, "2", true))
			if err != nil || !again.Duplicate || !again.Closed || again.Tail != first.Tail || again.Producer == nil || again.Producer.Seq != 1 {
				t.Errorf("%s: retry of the close: %+v, %v", ct, again, err)
			}
		}
		var closed *stream.ClosedError
		for _, refused := range []tier.AppendRequest{request(2, "3", false), request(2, "", true), {Name: named(id), ContentType: ct, Body: []byte("{")}} {
			if _, err := r.Append(bg, refused); !errors.As(err, &closed) || closed.Tail != first.Tail {
				t.Errorf("%s: append to the closed stream: %v", ct, err)
			}
		}
		if a, err := r.Append(bg, tier.AppendRequest{Name: named(id), Close: true}); err != nil || !a.Closed {
			t.Errorf("%s: close again without a producer: %+v, %v", ct, a, err)
		}
	}
}

func TestAppendRefusals(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, "")
	r.create("gone", octets, "x")
	r.fork("keeps it", "gone", 1)
	r.must(r.Delete(bg, named("gone")))
	for what, tt := range map[string]struct {
		a    tier.AppendRequest
		want error
	}{
		"no bytes":   {tier.AppendRequest{Name: named("a"), ContentType: octets}, stream.ErrEmptyBody},
		"other type": {tier.AppendRequest{Name: named("a"), ContentType: json, Body: []byte("{")}, stream.ErrContentType},
		"no stream":  {tier.AppendRequest{Name: named("b"), ContentType: octets, Body: []byte("x")}, stream.ErrNotFound},
		"deleted":    {tier.AppendRequest{Name: named("gone"), ContentType: octets, Body: []byte("x")}, stream.ErrGone},
	} {
		_, err := r.Append(bg, tt.a)
		r.is(err, tt.want, "%s", what)
	}
}

func TestBodyMayBeReusedAfterAppend(t *testing.T) {
	r := newRig(t, tier.Options{})
	for _, ct := range []string{octets, json} {
		r.create(ct, ct, "")
		body := []byte(`123`)
		_, err := r.Append(bg, tier.AppendRequest{Name: named(ct), ContentType: ct, Body: body})
		r.must(err)
		copy(body, "xxx")
		want := "123"
		if ct == json {
			want += "\n"
		}
		r.readable(ct, want, 0)
	}
}
