package compactor

import "time"

const (
	// shortRest follows a first failure; each further one doubles it, up to longRest.
	shortRest = 2 * time.Second
	longRest  = 10 * time.Minute
)

// rests are what is left alone for a while because it failed, so that it does not keep
// the others waiting: streams, or objects.
type rests[K comparable] map[K]*backoff

// backoff is how long something is left alone.
type backoff struct {
	failures int
	until    time.Time
}

// add counts a failure. It reports whether it is the first.
func (r rests[K]) add(k K, now time.Time) (first bool) {
	b := r[k]
	if first = b == nil; first {
		b = &backoff{}
		r[k] = b
	}
	b.until = now.Add(min(shortRest<<min(b.failures, 9), longRest))
	b.failures++
	return first
}

// resting reports whether something is left alone.
func (r rests[K]) resting(k K, now time.Time) bool {
	b := r[k]
	return b != nil && now.Before(b.until)
}

// expire forgets what has not failed again since its rest was over for long: it is
// gone, or there is nothing to do with it.
func (r rests[K]) expire(now time.Time) {
	for k, b := range r {
		if now.After(b.until.Add(longRest)) {
			delete(r, k)
		}
	}
}
