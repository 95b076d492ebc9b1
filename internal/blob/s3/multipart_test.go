package s3_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/s3"
)

// uploads is a store that notes the steps of multipart uploads; the step that is
// named by fail is refused.
type uploads struct {
	mu    sync.Mutex
	fail  string
	steps []string
}

func (u *uploads) serve(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	q := r.URL.Query()
	var step string
	switch {
	case r.Method == http.MethodPost && q.Has("uploads"):
		step = "create " + r.Header.Get("X-Amz-Storage-Class")
	case r.Method == http.MethodPut && q.Has("partNumber"):
		step = fmt.Sprintf("part %s of %d", q.Get("partNumber"), n)
	case r.Method == http.MethodPut:
		step = fmt.Sprintf("put %d", n)
	case r.Method == http.MethodPost:
		step = "complete " + r.Header.Get("If-None-Match")
	case r.Method == http.MethodDelete:
		step = "abort " + q.Get("uploadId")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.steps = append(u.steps, step)
	if u.fail != "" && strings.HasPrefix(step, u.fail) {
		refuse(w, 503, "SlowDown")
		return
	}
	w.Header().Set("Etag", `"e"`)
	switch {
	case strings.HasPrefix(step, "create"):
		fmt.Fprint(w, "<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>")
	case strings.HasPrefix(step, "complete"):
		fmt.Fprint(w, `<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>`)
	}
}

const mib = 1 << 20

func parts(o *s3.Options) {
	o.SinglePut = 8 * mib
	o.PartSize = 5 * mib
	o.StorageClass = "STANDARD_IA"
	o.Checksum = s3.ChecksumRequiredOnly // so that sizes on the wire are those of the parts
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		size int
		want []string
	}{
		{8 * mib, []string{"put 8388608"}},
		{8*mib + 1, []string{"create STANDARD_IA", "part 1 of 5242880", "part 2 of 3145729", "complete "}},
		{10 * mib, []string{"create STANDARD_IA", "part 1 of 5242880", "part 2 of 5242880", "complete "}},
		{10*mib + 1, []string{"create STANDARD_IA", "part 1 of 5242880", "part 2 of 5242880", "part 3 of 1", "complete "}},
	} {
		u := &uploads{}
		s := rude(t, u.serve, parts)
		info, err := s.Put(t.Context(), "k", bytes.NewReader(make([]byte, c.size)), blob.PutOptions{})
		if err != nil || !slices.Equal(u.steps, c.want) {
			t.Errorf("%d bytes: steps %q, want %q, %v", c.size, u.steps, c.want, err)
		}
		if len(c.want) > 1 && info.ETag != `"whole"` {
			t.Errorf("%d bytes: ETag %s", c.size, info.ETag)
		}
	}
}

// An upload that fails at any step is aborted.
func TestUploadIsAborted(t *testing.T) {
	for fail, want := range map[string]string{"create": "create STANDARD_IA", "part 2": "abort id", "complete": "abort id"} {
		u := &uploads{fail: fail}
		s := rude(t, u.serve, parts)
		_, err := s.Put(t.Context(), "k", bytes.NewReader(make([]byte, 11*mib)), blob.PutOptions{})
		wantError(t, err, blob.ErrUnavailable)
		if last := u.steps[len(u.steps)-1]; last != want {
			t.Errorf("%s fails: last step is %q, want %q", fail, last, want)
		}
	}
}

// It is aborted also when the caller has left.
func TestAbandonedUploadIsAborted(t *testing.T) {
	u := &uploads{}
	ctx, cancel := context.WithCancel(t.Context())
	s := rude(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("partNumber") == "2" {
			cancel()
			<-r.Context().Done()
			return
		}
		u.serve(w, r)
	}, parts)
	_, err := s.Put(ctx, "k", bytes.NewReader(make([]byte, 11*mib)), blob.PutOptions{})
	wantError(t, err, context.Canceled)
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := u.steps[len(u.steps)-1]; last != "abort id" {
		t.Errorf("last step is %q", last)
	}
}

// An upload that is slow, but moves, is not a stalled one.
func TestSlowUpload(t *testing.T) {
	tick := time.NewTicker(idle / 15) // what the sockets hold must drain within idle
	defer tick.Stop()
	s := rude(t, func(w http.ResponseWriter, r *http.Request) {
		for {
			select {
			case <-tick.C:
			case <-r.Context().Done():
				return
			}
			if _, err := io.CopyN(io.Discard, r.Body, mib); err != nil {
				break
			}
		}
		w.Header().Set("Etag", `"e"`)
	}, func(o *s3.Options) { o.MinRate = mib })
	if _, err := s.Put(t.Context(), "k", bytes.NewReader(make([]byte, 30*mib)), blob.PutOptions{}); err != nil {
		t.Error(err)
	}
}
