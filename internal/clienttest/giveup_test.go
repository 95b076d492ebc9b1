package clienttest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"firn/pkg/client"
)

// calls are all that a stream can be asked for.
func calls(s *client.Stream) map[string]func(context.Context) error {
	first := func(pages func(func(client.Page, error) bool)) (err error) {
		for _, err = range pages {
			break
		}
		return err
	}
	return map[string]func(context.Context) error{
		"create":     func(ctx context.Context) error { return second(s.Create(ctx, client.CreateOptions{})) },
		"head":       func(ctx context.Context) error { return second(s.Head(ctx)) },
		"append":     func(ctx context.Context) error { return second(s.Append(ctx, []byte("x"), client.AppendOptions{})) },
		"appendJSON": func(ctx context.Context) error { return second(s.AppendJSON(ctx, 1)) },
		"end":        func(ctx context.Context) error { return second(s.End(ctx)) },
		"get":        func(ctx context.Context) error { return second(s.Get(ctx, "")) },
		"read":       func(ctx context.Context) error { return first(s.Read(ctx, "")) },
		"follow":     func(ctx context.Context) error { return first(s.Follow(ctx, "")) },
		"messages": func(ctx context.Context) (err error) {
			for _, err = range client.Messages[int](s.Follow(ctx, "")) {
				break
			}
			return err
		},
		"sync": func(ctx context.Context) (err error) {
			for _, err = range s.Sync(ctx, "") {
				break
			}
			return err
		},
		"bootstrap": func(ctx context.Context) error { return second(s.Bootstrap(ctx)) },
		"snapshot":  func(ctx context.Context) error { return second(s.Snapshot(ctx)) },
		"publish":   func(ctx context.Context) error { return s.PublishSnapshot(ctx, "0", "", strings.NewReader("x")) },
		"unpublish": func(ctx context.Context) error { return s.DeleteSnapshot(ctx, "0") },
		"delete":    func(ctx context.Context) error { return s.Delete(ctx) },
		"produce": func(ctx context.Context) error {
			p, err := s.NewProducer(client.ProducerOptions{})
			if err == nil {
				p.Append(context.Background(), []byte("x"))
				err = p.Close(ctx)
			}
			return err
		},
	}
}

// Whatever is under way ends with its context: when nothing answers, when something
// only begins to, when all fails, and when the context has ended before.
func TestCancel(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"silent": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"slow": func(w http.ResponseWriter, r *http.Request) {
			// As much of an answer as all of them can have.
			h := w.Header()
			h.Set("Content-Type", "multipart/mixed; boundary=b")
			h.Set("Content-Length", "100")
			w.WriteHeader(http.StatusOK)
			if r.Method != http.MethodHead { // of which that is all
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		},
		"busy": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {

			io.Copy(io.Discard, r.Body) // only then does it see that a client has left
			answer(w, r)
		}))
		w := &world{site: site{streams: "/"}}
		for call, do := range calls(w.at(t, srv.URL, "x", client.Options{})) {
			for _, d := range []time.Duration{0, 5 * time.Millisecond} {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				err := do(ctx)
				ended := errors.Is(err, context.DeadlineExceeded)
				switch {
				case name == "slow" && errors.Is(err, client.ErrAnswer), name == "slow" && d > 0 && err == nil:
					// What it needed, or what it could not use, was there already.
				case name == "busy" && d > 0 && status(err) == http.StatusServiceUnavailable: // not repeated
				case !ended:
					t.Errorf("%s, %s, %s: %v", name, call, d, err)
				}
				cancel()
			}
		}
		srv.CloseClientConnections()
		srv.Close()
	}
}

func status(err error) int {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Status
	}
	return 0
}

// A loop that is left leaves nothing behind, nor does one that is given up while it
// waits at the tail, for however long it has waited.
func testGivingUp(t *testing.T, w *world) {
	for id, live := range map[string]client.Live{"sse": client.SSE, "poll": client.LongPoll} {
		w.create(t, id, asJSON, "[1,2,3]")
		s := w.at(t, w.URL(), id, client.Options{Live: live})
		for range s.Follow(t.Context(), "") {
			break
		}
		for range client.Messages[int](s.Follow(t.Context(), "")) {
			break
		}
		for _, wait := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var last error
			for p, err := range s.Follow(ctx, "") {
				if last = err; err == nil && p.UpToDate {
					time.AfterFunc(wait, cancel)
				}
			}
			if !errors.Is(last, context.Canceled) {
				t.Errorf("%s, canceled after %s: %v", id, wait, last)
			}
		}
	}
}
