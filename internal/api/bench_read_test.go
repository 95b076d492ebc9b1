package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"firn/internal/api"
)

// BenchmarkRead is the whole way of a catch-up read but the network.
func BenchmarkRead(b *testing.B) {
	h := api.New(api.Options{Store: newStore(b)}).Handler()
	for _, size := range []int{256, 64 << 10, 1 << 20} {
		var messages strings.Builder
		for i := 0; messages.Len() < size; i++ {
			fmt.Fprintf(&messages, `{"id":%d,"user":"u-%d","event":"page_view","latency":%d.%03d},`, i, i*7919%5000, i%300, i*31%1000)
		}
		path := fmt.Sprintf("/ds/default/s%d", size)
		put := httptest.NewRequest("PUT", path, strings.NewReader("["+strings.TrimSuffix(messages.String(), ",")+"]"))
		put.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(httptest.NewRecorder(), put)
		for _, accepted := range []string{"", "gzip", "zstd"} {
			b.Run(fmt.Sprintf("%d/%s", size, accepted), func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				r := httptest.NewRequest("GET", path, nil)
				if accepted != "" {
					r.Header.Set("Accept-Encoding", accepted)
				}
				sent := 0
				for b.Loop() {
					w := &forgetful{header: http.Header{}}
					h.ServeHTTP(w, r)
					if w.status != http.StatusOK {
						b.Fatalf("got %d", w.status)
					}
					sent += w.bytes
				}
				b.ReportMetric(float64(sent)/float64(b.N), "sent/op")
			})
		}
	}
}

// forgetful counts what it is sent, and forgets it.
type forgetful struct {
	header http.Header
	status int
	bytes  int
}

func (f *forgetful) Header() http.Header { return f.header }

func (f *forgetful) WriteHeader(status int) { f.status = status }

func (f *forgetful) Write(p []byte) (int, error) {
	f.bytes += len(p)
	return len(p), nil
}
