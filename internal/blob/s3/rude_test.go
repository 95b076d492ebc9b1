package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/s3"
)

// A server that misbehaves as written in the test. idle is short, so that what has
// to time out does so in a moment; tooLong is when a test gives up on it.
const (
	idle    = 150 * time.Millisecond
	tooLong = 10 * time.Second
)

// hasty is a store that waits no longer than idle.
func hasty(o *s3.Options) { o.IdleTimeout = idle }

// rude serves handler to a store that uses no conditions unless change says so.
func rude(t *testing.T, handler http.HandlerFunc, change ...func(*s3.Options)) *s3.Store {
	t.Helper()
	released := make(chan struct{}) // lets handlers that hang end with the test
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-released:
				cancel()
			case <-ctx.Done():
			}
		}()
		handler(w, r.WithContext(ctx))
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(released) })
	opts := options(srv.URL)
	opts.IdleTimeout = tooLong
	opts.Conditional = s3.ConditionalOff
	for _, c := range change {
		c(&opts)
	}
	s, err := s3.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	if code != "" {
		fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>as scripted</Message></Error>", code)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
	for _, other := range []error{blob.ErrNotFound, blob.ErrExists, blob.ErrPrecondition, blob.ErrUnavailable, blob.ErrDenied,
		blob.ErrCorrupt, blob.ErrNotSupported, blob.ErrRange, context.Canceled, context.DeadlineExceeded} {
		if other != want && errors.Is(err, other) {
			t.Errorf("error %v is also %v", err, other)
		}
	}
}

func within(t *testing.T, fn func() error) error {
	t.Helper()
	start := time.Now()
	err := fn()
	if d := time.Since(start); d > tooLong {
		t.Errorf("took %v", d)
	}
	return err
}

func readAll(t *testing.T, s blob.Store, off, n int64) ([]byte, error) {
	t.Helper()
	var b []byte
	err := within(t, func() (err error) {
		b, _, err = blob.ReadAll(t.Context(), s, "k", off, n)
		return err
	})
	return b, err
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "NoSuchKey", blob.ErrNotFound},
		{404, "NoSuchBucket", blob.ErrDenied},
		{404, "", blob.ErrDenied},
		{404, "XAdminUserNotFound", blob.ErrDenied},
		{403, "AccessDenied", blob.ErrDenied},
		{403, "", blob.ErrDenied},
		{401, "", blob.ErrDenied},
		{400, "ExpiredToken", blob.ErrDenied},
		{400, "AuthorizationHeaderMalformed", blob.ErrDenied},
		{403, "RequestTimeTooSkewed", blob.ErrDenied},
		{301, "PermanentRedirect", blob.ErrDenied},
		{307, "TemporaryRedirect", blob.ErrDenied},
		{429, "", blob.ErrUnavailable},
		{503, "SlowDown", blob.ErrUnavailable},
		{503, "", blob.ErrUnavailable},
		{500, "InternalError", blob.ErrUnavailable},
		{400, "RequestTimeout", blob.ErrUnavailable},
		{409, "ConditionalRequestConflict", blob.ErrUnavailable},
		{400, "BadDigest", blob.ErrCorrupt},
		{501, "NotImplemented", blob.ErrNotSupported},
		{405, "", blob.ErrNotSupported},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			var requests int
			s := rude(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				refuse(w, c.status, c.code)
			})
			_, err := readAll(t, s, 0, -1)
			wantError(t, err, c.want)
			_, err = readAll(t, s, 5, 5)
			wantError(t, err, c.want)
			if requests != 2 {
				t.Errorf("%d requests, want one a call", requests)
			}
			_, err = s.Put(t.Context(), "k", strings.NewReader("x"), blob.PutOptions{})
			if c.want == blob.ErrNotFound {
				wantError(t, err, blob.ErrDenied) // makes no sense as an answer to a put
				return
			}
			wantError(t, err, c.want)
			wantError(t, s.List(t.Context(), "", "", func(blob.Info) error { return nil }), c.want)
			_, _, err = s.Get(t.Context(), "k", 0, 0)
			wantError(t, err, c.want)
		})
	}
}

func TestRetryAfter(t *testing.T) {
	s := rude(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		refuse(w, 503, "SlowDown")
	})
	_, err := readAll(t, s, 0, -1)
	var ra *blob.RetryAfterError
	if !errors.As(err, &ra) || ra.After != 7*time.Second {
		t.Errorf("error is %v, want one to retry after 7 s", err)
	}
	wantError(t, err, blob.ErrUnavailable)
}

func TestNoServer(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	opts := options(srv.URL)
	opts.IdleTimeout = idle
	srv.Close()
	_, err := s3.Open(t.Context(), opts)
	wantError(t, err, blob.ErrUnavailable)
}

// object is the object that the rude servers below have.
var object = bytes.Repeat([]byte("0123456789"), 10_000)

// partial answers a ranged GET with what the test says.
func partial(w http.ResponseWriter, contentRange string, length int, body []byte) {
	w.Header().Set("Etag", `"e"`)
	w.Header().Set("Content-Length", fmt.Sprint(length))
	if contentRange != "" {
		w.Header().Set("Content-Range", contentRange)
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Write(body)
}

func TestBodies(t *testing.T) {
	hang := func(r *http.Request) { <-r.Context().Done() }
	for _, c := range []struct {
		name   string
		serve  http.HandlerFunc
		off, n int64
		want   error
	}{
		{"hang before headers", func(w http.ResponseWriter, r *http.Request) { hang(r) }, 0, -1, blob.ErrUnavailable},
		{"hang after headers", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "", len(object), nil)
			w.(http.Flusher).Flush()
			hang(r)
		}, 0, -1, blob.ErrUnavailable},
		{"hang in body", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 0-999/100000", 1000, object[:500])
			w.(http.Flusher).Flush()
			hang(r)
		}, 0, 1000, blob.ErrUnavailable},
		{"trickle", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 0-999/100000", 1000, nil)
			tick := time.NewTicker(idle / 3)
			defer tick.Stop()
			for i := range 1000 {
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
				w.Write(object[i : i+1])
				w.(http.Flusher).Flush()
			}
		}, 0, 1000, blob.ErrUnavailable},
		{"cut", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 0-999/100000", 1000, object[:500])
		}, 0, 1000, blob.ErrUnavailable},
		{"short but clean", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 0-499/100000", 500, object[:500])
		}, 0, 1000, blob.ErrCorrupt},
		{"length not of range", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 0-999/100000", 500, object[:500])
		}, 0, 1000, blob.ErrCorrupt},
		{"another range", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 10-1009/100000", 1000, object[10:1010])
		}, 0, 1000, blob.ErrCorrupt},
		{"another suffix", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 99900-99998/100000", 99, object[:99])
		}, -99, -1, blob.ErrCorrupt},
		{"no range at all", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "pages 1-2", 1000, object[:1000])
		}, 0, 1000, blob.ErrCorrupt},
		{"part of what was whole", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 0-999/100000", 1000, object[:1000])
		}, 0, -1, blob.ErrCorrupt},
		{"range beyond the object", func(w http.ResponseWriter, r *http.Request) {
			partial(w, "bytes 99990-99999/100000", 10, object[99990:])
		}, 99990, 20, blob.ErrRange},
		{"no length", func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			w.Write(object[:10])
		}, 0, -1, blob.ErrCorrupt},
		{"checksum", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Amz-Checksum-Crc32", "AAAAAA==")
			partial(w, "", len(object), object)
		}, 0, -1, blob.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := rude(t, c.serve, hasty)
			_, err := readAll(t, s, c.off, c.n)
			wantError(t, err, c.want)
		})
	}
}

// A server may ignore a range; the bytes are right all the same.
func TestRangeIgnored(t *testing.T) {
	s := rude(t, func(w http.ResponseWriter, r *http.Request) { partial(w, "", len(object), object) })
	for _, c := range [][2]int64{{0, 10}, {50_001, 1000}, {99_999, 1}, {-7, -1}, {70_000, -1}, {0, -1}} {
		got, err := readAll(t, s, c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		start, length, _ := blob.Resolve(c[0], c[1], int64(len(object)))
		if !bytes.Equal(got, object[start:start+length]) {
			t.Errorf("[%d, +%d): wrong bytes", c[0], c[1])
		}
	}
}

// A reader that takes its time is not a stalled store.
func TestSlowReader(t *testing.T) {
	s := rude(t, func(w http.ResponseWriter, r *http.Request) { partial(w, "", len(object), object) })
	r, _, err := s.Get(t.Context(), "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	<-time.After(3 * idle)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, object) {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
}

func TestPutsThatHang(t *testing.T) {
	large := bytes.NewReader(make([]byte, 32<<20)) // more than the sockets buffer
	for _, c := range []struct {
		name  string
		serve http.HandlerFunc
	}{
		{"never answers", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{"never reads", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"stops reading", func(w http.ResponseWriter, r *http.Request) {
			io.CopyN(io.Discard, r.Body, 1<<20)
			<-r.Context().Done()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := rude(t, c.serve, hasty)
			wantError(t, within(t, func() error {
				_, err := s.Put(t.Context(), "k", large, blob.PutOptions{})
				return err
			}), blob.ErrUnavailable)
			wantError(t, within(t, func() error { return s.Delete(t.Context(), "k") }), blob.ErrUnavailable)
			wantError(t, within(t, func() error { return s.Delete(t.Context(), "k", "l") }), blob.ErrUnavailable)
		})
	}
}

// The caller's own deadline is the caller's, not the store's failure.
func TestCallersDeadline(t *testing.T) {
	s := rude(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(o *s3.Options) { o.IdleTimeout = time.Hour })
	ctx, cancel := context.WithTimeout(t.Context(), idle)
	defer cancel()
	_, _, err := s.Get(ctx, "k", 0, -1)
	wantError(t, err, context.DeadlineExceeded)
	_, err = s.Put(ctx, "k", strings.NewReader("x"), blob.PutOptions{})
	wantError(t, err, context.DeadlineExceeded)
}

// bucketOf is a store with conditional writes as the mode says.
type bucketOf struct {
	mu     sync.Mutex
	mode   string
	exists bool
	puts   int
}

func (b *bucketOf) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	io.Copy(io.Discard, r.Body)
	if r.Method != http.MethodPut {
		fmt.Fprint(w, `<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
		return
	}
	b.puts++
	conditional := r.Header.Get("If-None-Match")+r.Header.Get("If-Match") != ""
	switch {
	case conditional && b.mode == "501":
		refuse(w, 501, "NotImplemented")
		return
	case conditional && b.mode == "conflict":
		refuse(w, 409, "ConditionalRequestConflict")
		return
	case conditional && b.mode == "503":
		refuse(w, 503, "SlowDown")
		return
	case conditional && b.mode == "honour":
		if r.Header.Get("If-Match") != "" || b.exists {
			refuse(w, 412, "PreconditionFailed")
			return
		}
	}
	b.exists = true
	w.Header().Set("Etag", `"e"`)
}

func TestProbe(t *testing.T) {
	auto := func(o *s3.Options) { o.Conditional = s3.ConditionalAuto }
	for _, c := range []struct {
		mode string
		want error // of a put with IfNoneMatch
		puts int   // of the trial
	}{
		{"ignore", blob.ErrNotSupported, 3},
		{"501", blob.ErrNotSupported, 3},
		{"honour", nil, 3},
		{"conflict", nil, 2},
	} {
		t.Run(c.mode, func(t *testing.T) {
			b := &bucketOf{mode: c.mode}
			s := rude(t, b.serve, auto)
			if err := s.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			if b.puts != c.puts {
				t.Errorf("%d puts to try, want %d", b.puts, c.puts)
			}
			b.exists = false
			if b.mode == "conflict" {
				b.mode = "honour"
			}
			_, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.PutOptions{IfNoneMatch: true})
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("conditional put: %v, want %v", err, c.want)
			}
			if c.want != nil && b.exists {
				t.Error("a refused condition reached the store")
			}
			if _, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.PutOptions{}); err != nil {
				t.Errorf("plain put: %v", err)
			}
		})
	}
	t.Run("tried again after a failure", func(t *testing.T) {
		b := &bucketOf{mode: "503"}
		s := rude(t, b.serve, auto)
		create := blob.PutOptions{IfNoneMatch: true}
		_, err := s.Put(t.Context(), "k", strings.NewReader("x"), create)
		wantError(t, err, blob.ErrUnavailable)
		b.mode = "honour"
		// The trial's own object and this one share the fake's only place.
		_, err = s.Put(t.Context(), "k", strings.NewReader("x"), create)
		wantError(t, err, blob.ErrExists)
	})
	for mode, want := range map[string]error{"ignore": blob.ErrNotSupported, "honour": nil} {
		t.Run("every second answer of a write is lost, "+mode, func(t *testing.T) {
			b := &bucketOf{mode: mode}
			puts := 0
			s := rude(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPut {
					b.serve(w, r)
					return
				}
				if puts++; puts%2 == 0 {
					b.serve(w, r)
					return
				}
				b.serve(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}, auto)
			// Each attempt loses one answer; what was told before is not asked again.
			var err error
			for range 4 {
				if err = s.Check(t.Context()); err == nil {
					break
				}
				wantError(t, err, blob.ErrUnavailable)
			}
			if err != nil {
				t.Fatalf("after %d puts the trial has not ended: %v", puts, err)
			}
			b.exists = false
			put := func() error {
				_, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.PutOptions{IfNoneMatch: true})
				return err
			}
			if want != nil {
				wantError(t, put(), want)
				return
			}
			wantError(t, put(), blob.ErrUnavailable) // lost, and done
			wantError(t, put(), blob.ErrExists)
		})
	}
	t.Run("off", func(t *testing.T) {
		b := &bucketOf{mode: "honour"}
		s := rude(t, b.serve)
		if err := s.Check(t.Context()); err != nil || b.puts != 0 {
			t.Errorf("check: %v after %d puts", err, b.puts)
		}
		_, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.PutOptions{IfNoneMatch: true})
		wantError(t, err, blob.ErrNotSupported)
	})
}

func TestOpenExplains(t *testing.T) {
	for _, c := range []struct {
		status     int
		code, text string
	}{
		{404, "NoSuchBucket", "the bucket does not exist"},
		{403, "AccessDenied", "no right to list"},
		{403, "InvalidAccessKeyId", "credentials are not valid"},
		{301, "PermanentRedirect", "the bucket is in region mars-1, not us-east-1"},
		{404, "", "does not look like an object store"},
	} {
		t.Run(fmt.Sprint(c.status, c.code), func(t *testing.T) {
			s := rude(t, func(w http.ResponseWriter, r *http.Request) {
				if c.status == 301 {
					w.Header().Set("X-Amz-Bucket-Region", "mars-1")
				}
				refuse(w, c.status, c.code)
			})
			err := s.Check(t.Context())
			wantError(t, err, blob.ErrDenied)
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q does not say %q", err, c.text)
			}
		})
	}
}
