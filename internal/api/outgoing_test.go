package api_test

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
	"firn/tier"
)

// Readers that do not read hold no more memory together than is allowed, and small
// answers do not wait for them.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const size = 10 << 20 // more than fits between two sockets
	_, hot := newTiers(t)
	c, _ := connectTo(t, api.Options{
		Store: tier.New(tier.Options{Hot: hot, ReadBytes: size}), OutgoingBytes: size + size/2, OutgoingWait: 10 * time.Millisecond,
	})
	c.create("/ds/trial/large", "application/octet-stream", strings.Repeat("x", size))
	c.create("/ds/trial/small", "application/octet-stream", "x")
	stuck := c.dial("GET /ds/trial/large HTTP/1.1\r\nHost: a\r\n\r\n")
	if res := response(t, bufio.NewReaderSize(stuck, 1024)); res.StatusCode != 200 {
		t.Fatalf("got %s", res.Status)
	}
	a := c.want(503, "GET", "/ds/trial/large", "")
	if a.code() != "too_many_bytes_unread" || a.header.Get("Retry-After") == "" {
		t.Errorf("got %s, %v", a.body, a.header)
	}
	c.want(200, "GET", "/ds/trial/small", "")
	stuck.Close()
	every(t, 5*time.Millisecond, "the memory is given back", func() bool {
		return c.do("GET", "/ds/trial/large", "").status == 200
	})
}
