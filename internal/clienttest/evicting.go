package clienttest

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"firn/pkg/stream"
)

// evicting moves a stream to the cold tier after each request that may have written to
// it. The answers to those are short: they leave when the handler returns.
func (s *Server) evicting(next http.Handler) http.Handler {
	var mu sync.Mutex // two seals of one stream are rivals
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		bucket, id, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/ds/"), "/")
		if !ok || r.Method != http.MethodPut && r.Method != http.MethodPost {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		err := s.Evict(r.Context(), stream.Name{Bucket: bucket, ID: id})
		if err != nil && r.Context().Err() == nil && !errors.Is(err, stream.ErrNotFound) && !errors.Is(err, stream.ErrGone) {
			panic(err)
		}
	})
}
