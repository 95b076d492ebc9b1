package admin

import "net/http"

// Buckets is the body of GET /admin/buckets.
type Buckets struct {
	Buckets []Bucket `json:"buckets"`
}

// Bucket is a bucket and how many streams it has that clients can use.
type Bucket struct {
	Bucket  string `json:"bucket"`
	Streams uint64 `json:"streams"`
}

func (s *Server) buckets(w http.ResponseWriter, r *http.Request) {
	names, err := s.opts.Store.Buckets(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	list := Buckets{Buckets: []Bucket{}}
	for _, n := range names {
		b, err := s.opts.Store.Bucket(r.Context(), n)
		if err != nil {
			continue // deleted since it was listed
		}
		list.Buckets = append(list.Buckets, Bucket(b))
	}
	write(w, http.StatusOK, list)
}
