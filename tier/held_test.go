package tier_test

import (
	"context"
	"testing"

	"firn/pkg/stream"
	"firn/tier"
)

// A process that was stopped for longer than a TTL found the deadline on disk passed
// when it went on. The stream that a reader held was then alive for readers and dead for
// writers, and a create of its name took it from under its reader.
func TestHeldStreamOutlivesAPause(t *testing.T) {
	request := tier.CreateRequest{Name: named("a"), ContentType: octets, Lifetime: stream.Lifetime{Sliding: true, TTL: 8}}
	for what, use := range map[string]func(r *rig) error{
		"append": func(r *rig) error {
			_, err := r.Append(bg, tier.AppendRequest{Name: named("a"), ContentType: octets, Body: []byte("x")})
			return err
		},
		"close": func(r *rig) error {
			_, err := r.Append(bg, tier.AppendRequest{Name: named("a"), Close: true})
			return err
		},
		"create again": func(r *rig) error {
			_, created, err := r.Create(bg, request)
			if created {
				t.Error("the stream was replaced")
			}
			return err
		},
		"fork": func(r *rig) error {
			_, _, err := r.Create(bg, tier.CreateRequest{Name: named("f"), Fork: &tier.ForkRequest{Source: named("a")}})
			return err
		},
		"snapshot": func(r *rig) error { r.publish("a", 0, ""); return nil },
		"nothing":  func(*rig) error { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, tier.Options{})
			was, _, err := r.Create(bg, request)
			r.must(err)
			f := r.follow("a", stream.Now)
			r.clock.Add(60_000)
			r.must(use(r))
			once, cancel := context.WithCancel(bg)
			cancel() // Run looks once before it ends
			r.must(r.hot.Run(once))
			if is := r.head("a"); is.ID != was.ID {
				t.Errorf("the stream is %v, was %v", is.ID, was.ID)
			}
			if is := r.record("a"); is.Deadline < uint64(r.clock.Load())+8000 {
				t.Errorf("a crash would end the stream under its reader, at %d", is.Deadline)
			}
			p, err := f.Next(bg)
			r.must(err)
			p.Release()
			f.Close()
			r.clock.Add(8000)
			_, err = r.Head(bg, named("a"))
			r.is(err, stream.ErrNotFound, "a TTL after the reader has left")
		})
	}
}
