package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

func produce(t *testing.T, s *client.Stream, o client.ProducerOptions) *client.Producer {
	t.Helper()
	p, err := s.NewProducer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

// Everything arrives once and in order, though one in six answers is lost or torn, with
// however many requests under way.
func testProducerOnce(t *testing.T, w *world) {
	for _, contentType := range []string{asJSON, asBinary} {
		for _, inFlight := range []int{1, 2, 8} {
			t.Run(fmt.Sprintf("%s %d", contentType, inFlight), func(t *testing.T) {
				id := strings.ReplaceAll(fmt.Sprint(contentType, inFlight), "/", "-")
				w.create(t, id, contentType, "")
				proxy := clienttest.NewProxy(t, w.URL())
				s := w.at(t, proxy.URL(), id, client.Options{})
				proxy.Fail(unlucky(6))
				p := produce(t, s, client.ProducerOptions{ContentType: contentType, InFlight: inFlight, BatchBytes: 100, BufferBytes: 2000})
				var want strings.Builder
				for i := range 2000 {
					line := fmt.Sprintf("%d\n", i)
					if err := p.Append(deadline(t), []byte(line)); err != nil {
						t.Fatal(err)
					}
					want.WriteString(line)
					if i%500 == 0 {
						if err := p.Flush(deadline(t)); err != nil || p.Acked() != uint64(i+1) {
							t.Fatalf("flush: %v; %d of %d acknowledged", err, p.Acked(), i+1)
						}
					}
				}
				if err := p.End(deadline(t)); err != nil || p.Acked() != 2000 {
					t.Fatalf("end: %v; %d acknowledged", err, p.Acked())
				}
				proxy.Fail(func() clienttest.Fate { return clienttest.Pass })
				got, last := collect(t, s.Read(t.Context(), ""), nil)
				same(t, got, want.String())
				if !last.Closed {
					t.Error("the stream is open")
				}
			})
		}
	}
}

// A server that crashes and comes back is no more than a pause.
func testProducerCrash(t *testing.T, w *world) {
	s := w.create(t, "log", asJSON, "")
	p := produce(t, s, client.ProducerOptions{ContentType: asJSON, BatchBytes: 20})
	var want strings.Builder
	for i := range 100 {
		if i%30 == 29 {
			if err := w.Crash(func() {}); err != nil {
				t.Fatal(err)
			}
		}
		fmt.Fprintf(&want, "%d\n", i)
		if err := p.Append(t.Context(), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	got, _ := collect(t, s.Read(t.Context(), ""), nil)
	same(t, got, want.String())
	if err := p.Append(t.Context(), []byte("1")); !errors.Is(err, client.ErrProducerClosed) {
		t.Errorf("append after close: %v", err)
	}
	if err := p.End(t.Context()); !errors.Is(err, client.ErrProducerClosed) {
		t.Errorf("end after close: %v", err)
	}
}

// Many may append at a time.
func testProducerConcurrent(t *testing.T, w *world) {
	s := w.create(t, "log", asJSON, "")
	p := produce(t, s, client.ProducerOptions{ContentType: asJSON, BufferBytes: 100})
	var g errgroup.Group
	for writer := range 8 {
		g.Go(func() error {
			for i := range 100 {
				if err := p.Append(t.Context(), fmt.Appendf(nil, "[%d,%d]", writer, i)); err != nil {
					return err
				}
			}
			return p.Flush(t.Context())
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	next := make(map[int]int)
	for m, err := range client.Messages[[2]int](s.Read(t.Context(), "")) {
		if err != nil || next[m[0]] != m[1] {
			t.Fatalf("got %v, %v after %v", m, err, next)
		}
		next[m[0]]++
	}
	if len(next) != 8 || next[7] != 100 {
		t.Errorf("got %v", next)
	}
}

// A producer that was replaced stops, and nothing of it comes after its successor.
func testProducerFencing(t *testing.T, w *world) {
	s := w.create(t, "log", asJSON, "")
	ctx := t.Context()
	say := func(p *client.Producer, text string) error {
		if err := p.Append(ctx, []byte(text)); err != nil {
			return err
		}
		return p.Flush(ctx)
	}
	first := produce(t, s, client.ProducerOptions{ID: "p", ContentType: asJSON})
	if err := say(first, "1"); err != nil {
		t.Fatal(err)
	}
	// The same epoch again: its first batch would be taken for a repetition.
	if err := say(produce(t, s, client.ProducerOptions{ID: "p", ContentType: asJSON}), "2"); !errors.Is(err, client.ErrEpochUsed) {
		t.Errorf("the same epoch: %v", err)
	}
	second := produce(t, s, client.ProducerOptions{ID: "p", Epoch: 5, ContentType: asJSON})
	if err := say(second, "3"); err != nil {
		t.Fatal(err)
	}
	err := say(first, "4")
	if stale, ok := errors.AsType[*stream.StaleEpochError](err); !ok || stale.Current != 5 {
		t.Errorf("a replaced producer: %v", err)
	}
	if err := first.Append(ctx, []byte("5")); err == nil || first.Acked() != 1 {
		t.Errorf("it goes on: %v, %d acknowledged", err, first.Acked())
	}
	for i, epoch := range []uint64{0, 6} { // stale, and used
		p := produce(t, s, client.ProducerOptions{ID: "p", Epoch: epoch, AutoClaim: true, ContentType: asJSON})
		for _, text := range []string{"6", "7"} {
			if err := say(p, text); err != nil {
				t.Errorf("claim %d: %v", i, err)
			}
		}
	}
	if err := say(second, "8"); err == nil {
		t.Error("a producer goes on after its id was claimed")
	}
	got, _ := collect(t, s.Read(ctx, ""), nil)
	same(t, got, "1\n3\n6\n7\n6\n7\n")
}

func testProducerErrors(t *testing.T, w *world) {
	s := w.create(t, "log", asJSON, "")
	ctx := t.Context()
	p := produce(t, s, client.ProducerOptions{ContentType: asJSON})
	for _, bad := range []string{"{", "1,2", "", " ", "1]["} {
		if err := p.Append(ctx, []byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if err := p.Append(ctx, []byte(" [ 1, 2 ] ")); err != nil {
		t.Error(err)
	}
	if err := p.Flush(ctx); err != nil {
		t.Error(err)
	}
	final, err := s.End(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for p.Err() == nil {
		p.Append(ctx, []byte("3"))
	}
	if closed, ok := errors.AsType[*client.ClosedError](p.Flush(ctx)); !ok || closed.Final != final {
		t.Errorf("a closed stream: %v", p.Err())
	}
	if err := p.Close(ctx); err == nil {
		t.Error("close does not tell of the failure")
	}
	got, _ := collect(t, s.Read(ctx, ""), nil)
	same(t, got, "[1,2]\n")

	wrong := produce(t, s, client.ProducerOptions{ContentType: asText, ID: "w"})
	wrong.Append(ctx, []byte("x"))
	if err := wrong.End(ctx); err == nil || wrong.Acked() != 0 {
		t.Errorf("another content type: %v", err)
	}
	for _, o := range []client.ProducerOptions{
		{ID: strings.Repeat("x", 257)}, {ID: "a\nb"}, {Epoch: 1 << 53},
	} {
		if _, err := s.NewProducer(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	produce(t, s, client.ProducerOptions{ID: strings.Repeat("x", 256), Epoch: 1<<53 - 1})
}

// A producer that nobody answers takes no more than its buffer, and can be left.
func testProducerUnanswered(t *testing.T, w *world) {
	w.create(t, "log", asBinary, "")
	proxy := clienttest.NewProxy(t, w.URL())
	s := w.at(t, proxy.URL(), "log", client.Options{})
	proxy.Fail(func() clienttest.Fate { return clienttest.Lose })
	p := produce(t, s, client.ProducerOptions{BufferBytes: 10})
	for range 10 {
		if err := p.Append(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := p.Append(short, []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an append beyond the buffer: %v", err)
	}
	if err := p.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("flush: %v", err)
	}
	if err := p.Close(short); !errors.Is(err, context.DeadlineExceeded) || p.Acked() != 0 {
		t.Errorf("close: %v", err)
	}
	// And gives up by itself.
	s = w.at(t, proxy.URL(), "log", client.Options{Retry: client.Retry{First: time.Millisecond, GiveUp: 10 * time.Millisecond}})
	p = produce(t, s, client.ProducerOptions{})
	p.Append(t.Context(), []byte("x"))
	if err := p.Close(t.Context()); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("gave up with %v", err)
	}
}

// Larger data than a batch or the buffer goes alone, and what waits is one batch.
func testProducerSizes(t *testing.T, w *world) {
	s := w.create(t, "log", asBinary, "")
	p := produce(t, s, client.ProducerOptions{BatchBytes: 10, BufferBytes: 20})
	var want strings.Builder
	for _, n := range []int{1, 9, 10, 11, 100, 5, 5, 5, 20, 21} {
		data := strings.Repeat(fmt.Sprint(n%10), n)
		want.WriteString(data)
		if err := p.Append(deadline(t), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Close(deadline(t)); err != nil {
		t.Fatal(err)
	}
	got, _ := collect(t, s.Read(t.Context(), ""), nil)
	same(t, got, want.String())
}

// Thousands of small appends are taken before the first is acknowledged.
func testProducerSmall(t *testing.T, w *world) {
	w.create(t, "log", asJSON, "")
	proxy := clienttest.NewProxy(t, w.URL())
	s := w.at(t, proxy.URL(), "log", client.Options{})
	proxy.Fail(func() clienttest.Fate { return clienttest.Lose })
	p := produce(t, s, client.ProducerOptions{ContentType: asJSON, InFlight: 8, BatchBytes: 1 << 10})
	const appends = 10_000
	var want strings.Builder
	for i := range appends {
		if err := p.Append(deadline(t), fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "{\"n\":%d}\n", i)
	}
	if p.Acked() != 0 {
		t.Errorf("%d are acknowledged", p.Acked())
	}
	proxy.Fail(unlucky(6))
	if err := p.Close(deadline(t)); err != nil || p.Acked() != appends {
		t.Errorf("close: %v; %d acknowledged", err, p.Acked())
	}
	got, _ := collect(t, w.stream(t, "log").Read(t.Context(), ""), nil)
	same(t, got, want.String())
}

// A producer that closes its stream does so once, whichever answer is lost.
func testProducerEnd(t *testing.T, w *world) {
	for lost := range 4 {
		for _, last := range []string{"", `"last"`} {
			id := fmt.Sprint("log", lost, len(last))
			w.create(t, id, asJSON, "")
			proxy := clienttest.NewProxy(t, w.URL())
			fates := make([]clienttest.Fate, 2*lost+1)
			fates[lost] = clienttest.Lose
			fates[2*lost] = clienttest.Tear
			proxy.Fail(in(fates...))
			p := produce(t, w.at(t, proxy.URL(), id, client.Options{}), client.ProducerOptions{ContentType: asJSON, BatchBytes: 4})
			want := ""
			for i := range 3 {
				if err := p.Append(t.Context(), fmt.Append(nil, 100+i)); err != nil {
					t.Fatal(err)
				}
				want += fmt.Sprintln(100 + i)
			}
			if last != "" {
				if err := p.Flush(deadline(t)); err != nil {
					t.Fatal(err)
				}
				if err := p.Append(t.Context(), []byte(last)); err != nil {
					t.Fatal(err)
				}
				want += last + "\n"
			}
			if err := p.End(deadline(t)); err != nil || p.Err() != nil {
				t.Errorf("answer %d lost: %v, %v", lost, err, p.Err())
			}
			if err := p.End(t.Context()); !errors.Is(err, client.ErrProducerClosed) {
				t.Errorf("end again: %v", err)
			}
			got, page := collect(t, w.stream(t, id).Read(t.Context(), ""), nil)
			if same(t, got, want); !page.Closed {
				t.Error("the stream is open")
			}
		}
	}
}

func testProducerBusy(t *testing.T, w *world) {
	w.create(t, "log", asJSON, "")
	s := w.at(t, busy(t, w.URL()), "log", client.Options{})
	p := produce(t, s, client.ProducerOptions{ContentType: asJSON, InFlight: 4, BatchBytes: 10})
	var want strings.Builder
	for i := range 100 {
		if err := p.Append(deadline(t), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&want, i)
	}
	if err := p.End(deadline(t)); err != nil {
		t.Fatal(err)
	}
	got, _ := collect(t, w.stream(t, "log").Read(t.Context(), ""), nil)
	same(t, got, want.String())
}
