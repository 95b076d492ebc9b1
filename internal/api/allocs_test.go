package api_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"firn/internal/api"
)

// The hot paths allocate little, the committer's and Pebble's part of them included: 46,
// 11, 40 and 20 times. The race detector has pools forget, so the bounds are wide: they
// are there to notice what grows with the data.
func TestHotPathsAllocateLittle(t *testing.T) {
	h := api.New(api.Options{Store: newStore(t)}).Handler()
	const path = "/ds/default/a"
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", path, nil))
	body := bytes.Repeat([]byte("x"), 256)
	in := bytes.NewReader(body)
	post := httptest.NewRequest("POST", path, nil)
	post.Header.Set("Content-Type", "application/octet-stream")
	post.ContentLength = int64(len(body))
	post.Body = io.NopCloser(in)
	for _, c := range []struct {
		what    string
		request *http.Request
		status  int
		most    float64
	}{
		{"append", post, http.StatusNoContent, 75},
		{"head", httptest.NewRequest("HEAD", path, nil), http.StatusOK, 20},
		{"read", httptest.NewRequest("GET", path+"?offset=-1", nil), http.StatusOK, 180},
		{"read at the tail", httptest.NewRequest("GET", path+"?offset=now", nil), http.StatusOK, 35},
	} {
		n := testing.AllocsPerRun(200, func() {
			in.Reset(body)
			w := &forgetful{header: http.Header{}}
			h.ServeHTTP(w, c.request)
			if w.status != c.status {
				t.Fatalf("%s: got %d", c.what, w.status)
			}
		})
		if n > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.what, n, c.most)
		}
	}
}
