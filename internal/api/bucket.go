package api

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// createBucket serves PUT of a bucket (X§1.2).
func (s *Server) createBucket(a *answer, r *http.Request) error {
	bucket, err := bucketOf(r)
	if err != nil {
		return err
	}
	s.bodies.discard(a, r)
	if err := s.store.CreateBucket(r.Context(), bucket); err != nil {
		return err
	}
	a.Header().Set(headerLocation, s.location(r, r.URL.EscapedPath()))
	a.WriteHeader(http.StatusCreated)
	return nil
}

// readBucket serves GET and HEAD of a bucket (X§1.3).
func (s *Server) readBucket(a *answer, r *http.Request) error {
	bucket, err := bucketOf(r)
	if err != nil {
		return err
	}
	info, err := s.store.Bucket(r.Context(), bucket)
	if err != nil {
		return err
	}
	return writeJSON(a, struct {
		BucketID string `json:"bucket_id"`
		Streams  uint64 `json:"streams"`
	}{info.Bucket, info.Streams})
}

// deleteBucket serves DELETE of a bucket (X§1.5).
func (s *Server) deleteBucket(a *answer, r *http.Request) error {
	bucket, err := bucketOf(r)
	if err != nil {
		return err
	}
	if err := s.store.DeleteBucket(r.Context(), bucket); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}

// writeJSON sends 200 and a value.
func writeJSON(a *answer, v any) error { return writeJSONStatus(a, http.StatusOK, v) }

func writeJSONStatus(a *answer, status int, v any) error {
	return writeJSONType(a, status, "application/json", v)
}

func writeJSONType(a *answer, status int, contentType string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // stream ids stay readable
	if err := enc.Encode(v); err != nil {
		return err
	}
	a.Header().Set(headerContentType, contentType)
	a.send(status, b.Bytes())
	return nil
}
