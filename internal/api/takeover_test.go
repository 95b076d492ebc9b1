package api_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/api"
)

// An event stream on HTTP/1.1 ends with its connection, as announced, and is whole: a
// client may have sent more already, which is no answer to anything.
func TestEventStreamTakesItsConnection(t *testing.T) {
	c, s := connect(t, api.Options{SSEMaxAge: time.Minute})
	c.create("/ds/trial/s", "text/plain", "x")
	conn := c.dial("GET /ds/trial/s?offset=-1&live=sse HTTP/1.1\r\nHost: x\r\n\r\nGET /ds/trial/s HTTP/1.1\r\nHost: x\r\n\r\n")
	r := bufio.NewReader(conn)
	res := response(t, r)
	if !res.Close || len(res.TransferEncoding) != 1 {
		t.Errorf("close %v, transfer encoding %v", res.Close, res.TransferEncoding)
	}
	e := &events{t: t, lines: bufio.NewReader(res.Body)}
	if got, _ := e.data(); got != "x" {
		t.Errorf("got %q", got)
	}
	c.append("/ds/trial/s", "text/plain", strings.Repeat("y", 200<<10)) // several chunks
	if got, _ := e.data(); got != strings.Repeat("y", 200<<10) {
		t.Errorf("got %d bytes", len(got))
	}
	s.Drain()
	e.control()
	if got := e.next(); got != "" {
		t.Errorf("after the last event: %q", got)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}

// A client of HTTP/1.0 knows no chunks.
func TestEventStreamOverHTTP10(t *testing.T) {
	c, s := connect(t, api.Options{})
	c.create("/ds/trial/s", "text/plain", "x")
	res := response(t, bufio.NewReader(c.dial("GET /ds/trial/s?offset=-1&live=sse HTTP/1.0\r\n\r\n")))
	e := &events{t: t, lines: bufio.NewReader(res.Body)}
	if got, _ := e.data(); got != "x" || len(res.TransferEncoding) > 0 {
		t.Errorf("got %q, transfer encoding %v", got, res.TransferEncoding)
	}
	s.Drain()
	e.control()
	if got := e.next(); got != "" {
		t.Errorf("after the last event: %q", got)
	}
}

func TestEventStreamEndsWithItsClient(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c, _ := connect(t, api.Options{Registerer: metrics})
	c.create("/ds/trial/s", "text/plain", "x")
	before := sample(t, metrics, "firn_http_requests_total")
	e := c.subscribe("/ds/trial/s?offset=-1&live=sse")
	e.data()
	if n := sample(t, metrics, "firn_http_live_readers"); n != 1 {
		t.Errorf("%v live readers", n)
	}
	e.cancel()
	every(t, time.Millisecond, "the client has left", func() bool { return sample(t, metrics, "firn_http_live_readers") == 0 })
	every(t, time.Millisecond, "it is counted", func() bool { return sample(t, metrics, "firn_http_requests_total") == before+1 })
}

// Nobody reads what a client sends after its request. It may be the next one; it is not
// read for ever.
func TestEventStreamIsNoSink(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c, _ := connect(t, api.Options{Registerer: metrics})
	c.create("/ds/trial/s", "text/plain", "x")
	conn := c.dial("GET /ds/trial/s?offset=-1&live=sse HTTP/1.1\r\nHost: x\r\n\r\n")
	response(t, bufio.NewReader(conn))
	taken := 0
	for noise := make([]byte, 4<<10); taken < 64<<20; taken += len(noise) {
		if _, err := conn.Write(noise); err != nil {
			break // it was cut
		}
	}
	if taken >= 64<<20 {
		t.Fatalf("%d bytes were taken", taken)
	}
	every(t, time.Millisecond, "the stream has ended", func() bool { return sample(t, metrics, "firn_http_live_readers") == 0 })
}

// brokenWriter is a writer with a bug.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { panic("a bug") }

// A reader whose first page meets a bug is a reader no longer: it would be counted, and
// hold the stream's TTL, for ever.
func TestEventStreamThatPanicsIsGone(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c, s := connect(t, api.Options{Registerer: metrics})
	c.create("/ds/trial/s", "text/plain", "x")
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the transfer is not broken off")
			}
		}()
		s.Handler().ServeHTTP(brokenWriter{httptest.NewRecorder()}, request("GET", "/ds/trial/s?offset=-1&live=sse"))
	}()
	if n := sample(t, metrics, "firn_http_live_readers"); n != 0 {
		t.Errorf("%v live readers", n)
	}
}

// Whoever stops the server may wait for the readers, and for those who take nothing only
// as long as is meant.
func TestShutdownCutsEventStreams(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c, s := connect(t, api.Options{Registerer: metrics})
	c.create("/ds/trial/s", "text/plain", "x")
	conn := c.dial("GET /ds/trial/s?offset=-1&live=sse HTTP/1.1\r\nHost: x\r\n\r\n")
	if res := response(t, bufio.NewReaderSize(conn, 1024)); res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
	const size = 10 << 20
	c.append("/ds/trial/s", "text/plain", strings.Repeat("m", size))
	every(t, time.Millisecond, "it is being sent", func() bool { return sample(t, metrics, "firn_http_page_bytes_total") > 1 })
	s.Drain()
	patience, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.Shutdown(patience) // returns, although the default of WriteStallTimeout is far away
	if patience.Err() == nil {
		t.Error("a reader that takes nothing was not waited for")
	}
	if n, _ := io.Copy(io.Discard, conn); n >= size {
		t.Errorf("it was not cut: %d bytes", n)
	}
}
