package subscribe

import (
	"strings"

	"firn/internal/subscribe/glob"
	"firn/pkg/stream"
)

// Scope is what the paths of a subscription are relative to (B§6): a bucket, or with
// the empty Scope all of them, for paths of the form "{bucket}/{stream}".
type Scope string

const (
	// Flat is the scope of the flat surface.
	Flat Scope = stream.DefaultBucket
	// Bucketed is the scope of the surface with buckets.
	Bucketed Scope = ""
)

// Name returns the stream that a path names; a slash before it is ignored. Errors:
// [ErrInvalid].
func (s Scope) Name(path string) (stream.Name, error) {
	path = strings.TrimPrefix(path, "/")
	var n stream.Name
	var err error
	if s == Flat {
		n, err = stream.ParsePath(strings.Split(path, "/"))
	} else {
		bucket, id, _ := strings.Cut(path, "/")
		n, err = stream.ParseName(bucket, id)
	}
	if err != nil {
		return stream.Name{}, invalid("stream path %q: %v", path, err)
	}
	return n, nil
}

// Path is the inverse of Name; ok is false for a stream that has no path here.
func (s Scope) Path(n stream.Name) (path string, ok bool) {
	if s == Flat {
		return n.ID, n.Bucket == stream.DefaultBucket
	}
	return n.String(), n.Listed()
}

// path is Path of a name that came from Name.
func (s Scope) path(n stream.Name) string {
	p, _ := s.Path(n)
	return p
}

// matches reports whether a pattern of this scope matches a stream.
func (s Scope) matches(p glob.Pattern, n stream.Name) bool {
	path, ok := s.Path(n)
	return ok && p.Match(path)
}

// span is where in the order of names the streams are whose path begins with prefix:
// from the first name on, as long as within holds.
func (s Scope) span(prefix string) (first stream.Name, within func(stream.Name) bool) {
	if s == Flat {
		first = stream.Name{Bucket: stream.DefaultBucket, ID: prefix}
		return first, func(n stream.Name) bool { return n.Bucket == first.Bucket && strings.HasPrefix(n.ID, prefix) }
	}
	bucket, id, whole := strings.Cut(prefix, "/")
	first = stream.Name{Bucket: bucket, ID: id}
	if !whole {
		return first, func(n stream.Name) bool { return strings.HasPrefix(n.Bucket, bucket) }
	}
	return first, func(n stream.Name) bool { return n.Bucket == bucket && strings.HasPrefix(n.ID, id) }
}
