package subscribe

import "time"

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
	// jitter is the part of a delay that is chance.
	jitter = 0.2
)

// backoff is the delay after a number of failures in a row, at least one: from 1 s up
// to 60 s, doubling. A fifth of it is chance, a number in [0,1) (B§7.1).
func backoff(failures uint64, chance float64) time.Duration {
	d := lastRetry
	if failures <= 6 {
		d = min(firstRetry<<(failures-1)*5/4, lastRetry)
	}
	return max(d-time.Duration(jitter*chance*float64(d)), firstRetry)
}
