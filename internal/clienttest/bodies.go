package clienttest

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
)

// NewHTTP returns an HTTP client whose connections end with the test, which fails if
// then there is an answer that nobody has closed.
func NewHTTP(t testing.TB) *http.Client {
	b := &bodies{transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	t.Cleanup(func() {
		if n := b.open.Load(); n != 0 {
			t.Errorf("%d answers are not closed", n)
		}
		b.transport.CloseIdleConnections()
	})
	return &http.Client{Transport: b}
}

// bodies counts the answers that are open.
type bodies struct {
	transport *http.Transport
	open      atomic.Int64
}

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.transport.RoundTrip(r)
	if err == nil {
		b.open.Add(1)
		resp.Body = &counted{ReadCloser: resp.Body, open: &b.open}
	}
	return resp, err
}

type counted struct {
	io.ReadCloser
	open   *atomic.Int64
	closed atomic.Bool
}

func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.ReadCloser.Close()
}
