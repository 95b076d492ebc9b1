package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// Retry says how failed requests are repeated. The zero Retry is usable.
type Retry struct {
	// First is the longest that the first repetition waits (default 100 ms). Each
	// further one waits up to twice as long, but no more than Longest (default
	// 10 s). Half of each wait is random, so that clients do not come back in step.
	// A longer Retry-After of the server counts.
	First, Longest time.Duration
	// GiveUp is for how long there may be nothing but failures (default 2 min).
	// Negative: nothing is repeated.
	GiveUp time.Duration
}

func (r Retry) withDefaults() Retry {
	if r.First <= 0 {
		r.First = 100 * time.Millisecond
	}
	if r.Longest <= 0 {
		r.Longest = 10 * time.Second
	}
	if r.GiveUp == 0 {
		r.GiveUp = 2 * time.Minute
	}
	return r
}

// backoff is the waiting between the attempts at one thing.
type backoff struct {
	retry  Retry
	waits  int
	failed time.Time // when the failures began
}

// succeeded begins anew.
func (b *backoff) succeeded() { b.waits, b.failed = 0, time.Time{} }

// wait returns when it is time for another attempt, or an error if there should be
// none: err itself when it is not worth repeating.
func (b *backoff) wait(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case b.retry.GiveUp < 0 || !temporary(err):
		return err
	}
	if b.failed.IsZero() {
		b.failed = time.Now()
	}
	d := b.retry.Longest
	if b.waits < 30 {
		d = min(d, b.retry.First<<b.waits)
	}
	b.waits++
	d -= rand.N(d/2 + 1)
	if e, ok := errors.AsType[*Error](err); ok {
		d = max(d, e.RetryAfter)
	}
	if past := time.Since(b.failed); past+d > b.retry.GiveUp {
		return fmt.Errorf("failing for %s: %w", past.Round(time.Millisecond), err)
	}
	return sleep(ctx, d)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// repeat makes attempts until one succeeds or there should be no other.
func repeat[T any](ctx context.Context, r Retry, attempt func() (T, error)) (T, error) {
	b := backoff{retry: r}
	for {
		v, err := attempt()
		if err == nil {
			return v, nil
		}
		if err := b.wait(ctx, err); err != nil {
			return v, err
		}
	}
}

// temporary reports whether the same request may succeed later.
func temporary(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusTooManyRequests:
			return e.Code != "producer_limit" // which time does not heal
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	return errors.Is(err, ErrUnreachable)
}
