package scrub

import "time"

const (
	// maxLater bounds how many objects wait for an answer: then a round waits too.
	maxLater = 1000
	// shortLater is when an object that gave no answer is tried again; each further
	// time it is twice as long, up to longLater.
	shortLater = time.Minute
	longLater  = time.Hour
)

// later are objects about which the store gave no answer.
type later map[string]delay

type delay struct {
	failures int
	until    time.Time
}

func (l later) add(key string, now time.Time) {
	d := l[key]
	d.until = now.Add(min(shortLater<<min(d.failures, 16), longLater))
	d.failures++
	l[key] = d
}

// take returns the object that is due for the longest; it stays until it has answered.
func (l later) take(now time.Time) (string, bool) {
	key, at := l.first()
	return key, key != "" && !now.Before(at)
}

// due is when the next object is, zero if there is none.
func (l later) due() time.Time {
	_, at := l.first()
	return at
}

func (l later) first() (key string, at time.Time) {
	for k, d := range l {
		if key == "" || d.until.Before(at) || d.until.Equal(at) && k < key {
			key, at = k, d.until
		}
	}
	return key, at
}
