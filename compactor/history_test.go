package compactor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
)

// Objects that overlap, because answers were lost, rivals worked or the power failed, are
// not referenced for ever: at the end the store has what the catalog names, and nothing
// when that is nothing.
func TestNoHistoryLeavesObjectsBehind(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			r := newRig(t, setup{policy: compactor.Policy{Target: 400, MaxAge: time.Minute}})
			const streams = 12
			content := make([]string, streams)
			for i := range content {
				r.create(fmt.Sprint(i), "")
			}
			rivals := []*compactor.Compactor{r.another(), r.another()}
			for range 250 {
				i := rnd.IntN(streams)
				id := fmt.Sprint(i)
				switch rnd.IntN(12) {
				case 0:
					r.faults.Script(fault.Fault{Op: fault.Put, Kind: fault.After, Skip: rnd.IntN(3)})
				case 1:
					r.faults.Script(fault.Fault{Op: []fault.Op{fault.Put, fault.Get, fault.Delete}[rnd.IntN(3)], Kind: fault.Before})
				case 2:
					r.faults.Clear() // for the snapshot itself
					if n := len(content[i]); n > 0 {
						r.publish(id, min(r.record(id).Tail, r.record(id).Earliest+uint64(rnd.IntN(n))))
					}
				case 3:
					r.must(r.store.Delete(bg, named(id)))
					r.create(id, "")
					content[i] = ""
				case 4:
					if rnd.IntN(3) == 0 {
						r.crash()
						rivals = []*compactor.Compactor{r.another(), r.another()}
					}
				case 5:
					r.must(r.EvictStream(bg, r.record(id).ID))
				case 6:
					r.clock.Add(rnd.Int64N(3_000_000))
				default:
					body := letters(1 + rnd.IntN(60))
					r.append(id, body)
					content[i] += body
				}
				r.clock.Add(20_000)
				c := append(rivals, r.Compactor)[rnd.IntN(3)]
				_, _ = c.Pass(bg) // it may fail, by a fault
			}
			r.faults.Clear()
			for range 4 {
				r.clock.Add(keepHistory.Milliseconds())
				r.pass()
			}
			named := make(map[string]bool)
			v := r.hot.View()
			for i := range content {
				rec := r.record(fmt.Sprint(i))
				r.holds(fmt.Sprint(i), content[i], rec.Earliest)
				refs, err := v.Segments(rec.ID, rec.Floor, rec.Sealed, 1000)
				r.must(err)
				for _, ref := range refs {
					named[ref.Object] = true
				}
			}
			v.Close()
			if keys := r.objects(".zst"); len(keys) != len(named) {
				t.Errorf("%d objects, %d are named", len(keys), len(named))
			}
			for i := range content {
				r.must(r.store.Delete(bg, stream.Name{Bucket: stream.DefaultBucket, ID: fmt.Sprint(i)}))
			}
			for range 4 {
				r.clock.Add(keepHistory.Milliseconds())
				r.pass()
			}
			r.count(0, "after all was deleted")
			if n := len(r.objects(".snapshot")); n != 0 {
				t.Errorf("%d snapshots are left", n)
			}
		})
	}
}

// Readers go on while segments are replaced under them and the old ones removed. The
// grace is over as soon as the clock moves, so that they do meet objects that are gone.
func TestReadersWhileSegmentsAreReplaced(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 4000, MaxAge: time.Second, Budget: 1, HardBytes: 1 << 30}})
	const streams, rounds = 4, 60
	var content [streams]atomic.Pointer[string]
	for i := range streams {
		r.create(fmt.Sprint(i), "")
		content[i].Store(new(string))
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	var reads atomic.Int64
	for w := range 4 {
		rnd := rand.New(rand.NewPCG(uint64(w), 9))
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				i := rnd.IntN(streams)
				want := *content[i].Load()
				from := rnd.IntN(len(want) + 1)
				if err := readFrom(r.store, fmt.Sprint(i), r.record(fmt.Sprint(i)).Offset(uint64(from)), want[from:]); err != nil {
					t.Errorf("read of %d from %d: %v", i, from, err)
					return
				}
				reads.Add(1)
			}
		})
	}
	for range rounds {
		for i := range streams {
			body := letters(20)
			all := *content[i].Load() + body
			r.append(fmt.Sprint(i), body)
			r.must(r.SealStream(bg, r.record(fmt.Sprint(i)).ID))
			content[i].Store(&all)
		}
		r.wait(2 * time.Second)
		r.wait(grace)
	}
	close(done)
	readers.Wait()
	if n := r.metric("firn_compactor_rewrites_total"); n < streams*rounds/16 || reads.Load() == 0 {
		t.Errorf("%v merges and %d reads: too few to tell", n, reads.Load())
	}
}

// readFrom reads pages up to the tail; they begin with want.
func readFrom(s *tier.Store, id string, at stream.Offset, want string) error {
	got := ""
	for {
		p, err := s.Read(bg, named(id), stream.At(at))
		if err != nil {
			return err
		}
		got, at = got+string(p.Data), p.Next
		p.Release()
		if p.UpToDate {
			break
		}
	}
	if len(got) < len(want) || got[:len(want)] != want {
		return errors.New("other bytes")
	}
	return nil
}
