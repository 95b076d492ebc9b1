package api_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"firn/internal/api"
)

// BenchmarkAppend is the whole way of a small append but the network.
func BenchmarkAppend(b *testing.B) {
	h := api.New(api.Options{Store: newStore(b)}).Handler()
	for _, path := range []string{"/v1/stream/s", "/ds/default/t"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", path, nil))
		b.Run(path, func(b *testing.B) {
			body := bytes.Repeat([]byte("x"), 256)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				in := bytes.NewReader(body)
				r := httptest.NewRequest("POST", path, nil)
				r.Header.Set("Content-Type", "application/octet-stream")
				r.ContentLength = int64(len(body))
				r.Body = io.NopCloser(in)
				for pb.Next() {
					in.Reset(body)
					w := &countingWriter{header: http.Header{}}
					h.ServeHTTP(w, r)
					if w.status != http.StatusNoContent {
						b.Fatalf("got %d", w.status)
					}
				}
			})
		})
	}
}
