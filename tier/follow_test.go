package tier_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/pkg/stream"
	"firn/tier"
)

// follow opens a follower that is closed at the end of the test.
func (r *rig) follow(id string, start stream.Start) *tier.Follower {
	r.t.Helper()
	f, err := r.Follow(bg, named(id), start)
	r.must(err)
	r.t.Cleanup(f.Close)
	return f
}

// next fails the test unless the follower's page is the one wanted.
func (r *rig) next(f *tier.Follower, want string, upToDate bool) {
	r.t.Helper()
	p, err := f.Next(bg)
	if err != nil || string(p.Data) != want || p.UpToDate != upToDate {
		r.t.Fatalf("page %q, up to date %v, %v; want %q, %v", p.Data, p.UpToDate, err, want, upToDate)
	}
	p.Release()
}

func TestFollowerReadsOnThroughTheTiers(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(2*readBytes + 10)
	r.create("a", octets, content)
	r.cool("a", readBytes+5)
	f := r.follow("a", stream.Beginning)
	r.next(f, content[:readBytes], false)
	r.next(f, content[readBytes:2*readBytes], false)
	r.next(f, content[2*readBytes:], true)
	r.next(f, "", true)
	r.append("a", "more")
	r.cool("a", r.head("a").Tail.Position)
	r.next(f, "more", true)
}

func TestFollowerWakes(t *testing.T) {
	for what, do := range map[string]func(*rig){
		"append": func(r *rig) { r.append("a", "x") },
		"close": func(r *rig) {
			_, err := r.Append(bg, tier.AppendRequest{Name: named("a"), Close: true})
			r.must(err)
		},
		"delete": func(r *rig) { r.must(r.Delete(bg, named("a"))) },
		"delete and create": func(r *rig) {
			r.must(r.Delete(bg, named("a")))
			r.create("a", octets, "the successor")
		},
		"delete with a fork": func(r *rig) {
			r.fork("f", "a", 1)
			r.must(r.Delete(bg, named("a")))
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, tier.Options{})
			r.create("a", octets, "1")
			f := r.follow("a", stream.Now)
			r.next(f, "", true)
			ctx, cancel := context.WithTimeout(bg, time.Minute)
			defer cancel()
			woken := make(chan error)
			go func() { woken <- f.Wait(ctx) }()
			do(r)
			r.must(<-woken)
			p, err := f.Next(bg)
			switch what {
			case "append":
				if err != nil || string(p.Data) != "x" {
					t.Errorf("%q, %v", p.Data, err)
				}
			case "close":
				if err != nil || !p.Closed || len(p.Data) != 0 {
					t.Errorf("page %+v, %v", p, err)
				}
			case "delete with a fork":
				r.is(err, stream.ErrGone, "deleted")
			default:
				r.is(err, stream.ErrNotFound, "deleted")
			}
		})
	}
}

func TestFollowerNeverSeesASuccessor(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, "12")
	f := r.follow("a", stream.Beginning)
	r.must(r.Delete(bg, named("a")))
	r.create("a", octets, "its successor is longer")
	_, err := f.Next(bg)
	r.is(err, stream.ErrNotFound, "follower of the predecessor")
	r.must(f.Wait(bg))
	if f.Info().Tail.Position != 2 {
		t.Errorf("info %+v is the successor's", f.Info())
	}
}

func TestFollowerIsOvertakenByASnapshot(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, "0123456789")
	behind, at := r.follow("a", r.at("a", 4)), r.follow("a", r.at("a", 5))
	r.publish("a", 5, "")
	_, err := behind.Next(bg)
	r.trimmed(err, 5, "follower that was overtaken")
	r.next(at, "56789", true)
}

func TestWaitEndsWithItsContext(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, "")
	f := r.follow("a", stream.Now)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	r.is(f.Wait(ctx), context.Canceled, "wait")
}

func TestManyFollowersGetTheSameBytes(t *testing.T) {
	r := newRig(t, tier.Options{ReadBytes: 1 << 20})
	r.create("a", json, "")
	const messages = 60
	want := strings.Repeat("\"message\"\n", messages)
	var readers sync.WaitGroup
	for i := range 20 {
		f := r.follow("a", stream.Beginning)
		readers.Go(func() {
			var got []byte
			for {
				p, err := f.Next(bg)
				if err != nil {
					t.Errorf("reader %d: %v", i, err)
					return
				}
				got = append(got, p.Data...)
				p.Release()
				if p.Closed {
					break
				}
				if p.UpToDate {
					if err := f.Wait(bg); err != nil {
						t.Errorf("reader %d: %v", i, err)
						return
					}
				}
			}
			if string(got) != want {
				t.Errorf("reader %d got %d bytes, want %d", i, len(got), len(want))
			}
		})
	}
	for i := range messages {
		r.append("a", `"message"`)
		if i%7 == 3 {
			r.cool("a", r.record("a").Tail)
		}
	}
	_, err := r.Append(bg, tier.AppendRequest{Name: named("a"), Close: true})
	r.must(err)
	readers.Wait()
}

func TestExpiryByTheClock(t *testing.T) {
	r := newRig(t, tier.Options{})
	make := func(id string, l stream.Lifetime) {
		_, _, err := r.Create(bg, tier.CreateRequest{Name: named(id), ContentType: octets, Lifetime: l, Body: []byte("x")})
		r.must(err)
	}
	gone := func(id string) bool {
		_, err := r.Head(bg, named(id))
		if err != nil && !errors.Is(err, stream.ErrNotFound) {
			t.Fatal(err)
		}
		return err != nil
	}
	start := r.clock.Load()
	make("until", stream.Lifetime{At: time.UnixMilli(start + 5000)})
	make("read", stream.Lifetime{Sliding: true, TTL: 5})
	make("headed", stream.Lifetime{Sliding: true, TTL: 5})
	make("zero", stream.Lifetime{Sliding: true})
	make("past", stream.Lifetime{At: time.UnixMilli(start)})
	if !gone("zero") || !gone("past") {
		t.Error("a lifetime of nothing has not ended")
	}
	r.clock.Store(start + 4999)
	if gone("until") || gone("read") || gone("headed") {
		t.Error("gone too early")
	}
	p, err := r.page("read", 0)
	r.must(err)
	p.Release()
	r.clock.Store(start + 5000)
	if !gone("until") {
		t.Error("there after its end")
	}
	if !gone("headed") {
		t.Error("HEAD has renewed a TTL")
	}
	r.clock.Store(start + 4999 + 4999)
	if gone("read") {
		t.Error("a read has not renewed its TTL")
	}
	r.clock.Store(start + 4999 + 5000)
	if !gone("read") {
		t.Error("there after its TTL")
	}
	make("read", stream.Lifetime{}) // the name is free
}

func TestFollowersHoldATTLUntilTheLastIsClosed(t *testing.T) {
	r := newRig(t, tier.Options{})
	_, _, err := r.Create(bg, tier.CreateRequest{Name: named("a"), ContentType: octets, Lifetime: stream.Lifetime{Sliding: true, TTL: 8}})
	r.must(err)
	one, two := r.follow("a", stream.Now), r.follow("a", stream.Now)
	r.clock.Add(60_000)
	r.must(r.hot.ExpireDue(bg))
	r.next(one, "", true)
	one.Close()
	one.Close() // which counts once
	r.clock.Add(60_000)
	r.must(r.hot.ExpireDue(bg))
	r.next(two, "", true)
	two.Close()
	r.clock.Add(7999)
	r.must(r.hot.ExpireDue(bg))
	r.head("a") // a TTL after the last reader has left
	r.clock.Add(1)
	_, err = r.Head(bg, named("a"))
	r.is(err, stream.ErrNotFound, "a TTL after the last reader has left")
}

func TestFollowerDoesNotHoldAnEnd(t *testing.T) {
	r := newRig(t, tier.Options{})
	end := time.UnixMilli(r.clock.Load() + 1000)
	_, _, err := r.Create(bg, tier.CreateRequest{Name: named("a"), ContentType: octets, Lifetime: stream.Lifetime{At: end}})
	r.must(err)
	f := r.follow("a", stream.Now)
	r.clock.Add(1000)
	_, err = f.Next(bg)
	r.is(err, stream.ErrNotFound, "follower after Expires-At")
	r.must(r.hot.ExpireDue(bg))
	r.must(f.Wait(bg))
}
