package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/api"
	"firn/tier"
)

// dial opens a connection of its own and sends what is given. Its receive buffer is
// small, so that what it does not read waits in the server.
func (c *client) dial(request string) net.Conn {
	c.t.Helper()
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		cerr := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
		if cerr != nil {
			return cerr
		}
		return err
	}}
	conn, err := d.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, request); err != nil {
		c.t.Fatal(err)
	}
	return conn
}

// response reads the head of an answer.
func response(t *testing.T, in *bufio.Reader) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// sample returns the sum of a metric's samples.
func sample(t *testing.T, g prometheus.Gatherer, name string) (sum float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// every calls f at a pace until it says that it is done, or half a minute has passed.
func every(t *testing.T, pace time.Duration, what string, f func() (done bool)) {
	t.Helper()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for deadline := time.After(30 * time.Second); !f(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

const idle = 200 * time.Millisecond

// A body that always brings something, but never enough, held its buffer for as long as
// its sender liked.
func TestDribblingBodyIsCut(t *testing.T) {
	c, _ := connect(t, api.Options{BodyIdleTimeout: idle})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	for name, framing := range map[string]string{"length": "Content-Length: 100000", "chunked": "Transfer-Encoding: chunked"} {
		for _, target := range []string{"POST /ds/trial/s", "PUT /ds/trial/new", "PUT /ds/trial/s/snapshot/" + tail} {
			conn := c.dial(target + " HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n" + framing + "\r\n\r\n")
			answered := make(chan *http.Response, 1)
			go func() {
				res, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					res = nil
				}
				answered <- res
			}()
			var res *http.Response
			every(t, idle/10, "the cut", func() bool {
				select {
				case res = <-answered:
					return true
				default:
					io.WriteString(conn, map[string]string{"length": "x", "chunked": "1\r\nx\r\n"}[name])
					return false
				}
			})
			if res == nil || res.StatusCode != http.StatusRequestTimeout || !res.Close {
				t.Errorf("%s, %s: got %+v", name, target, res)
			}
			conn.Close()
		}
	}
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != "x" {
		t.Errorf("stream holds %q", got)
	}
	c.want(404, "HEAD", "/ds/trial/new", "")
	c.want(404, "GET", "/ds/trial/s/snapshot", "")
}

// The same over HTTP/2, where the connection must not suffer.
func TestDribblingStreamIsCut(t *testing.T) {
	c, _ := connect(t, api.Options{BodyIdleTimeout: idle})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	c.http = &http.Client{Transport: http2(t)}
	live := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
	live.control()
	in, out := io.Pipe()
	defer out.Close()
	answered := make(chan int, 1)
	go func() {
		r, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/ds/trial/s", in)
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		res, err := c.http.Do(r)
		if err != nil {
			answered <- 0
			return
		}
		res.Body.Close()
		in.Close()
		answered <- res.StatusCode
	}()
	status := -1
	every(t, idle/10, "the cut", func() bool {
		select {
		case status = <-answered:
			return true
		default:
			io.WriteString(out, "x")
			return false
		}
	})
	if status != http.StatusRequestTimeout {
		t.Errorf("got %d", status)
	}
	c.append("/ds/trial/s", "text/plain", "y")
	if got, _ := live.data(); got != "y" {
		t.Errorf("event %q", got)
	}
}

// A slow body that keeps the pace is taken, however long it takes.
func TestSlowBodyIsTaken(t *testing.T) {
	c, _ := connect(t, api.Options{BodyIdleTimeout: 5 * idle})
	c.create("/ds/trial/s", "text/plain", "")
	const pieces = 80
	piece := strings.Repeat("x", 100) // 100 bytes in 20 ms
	conn := c.dial("POST /ds/trial/s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 8000\r\n\r\n")
	n := 0
	every(t, idle/10, "all pieces", func() bool {
		if _, err := io.WriteString(conn, piece); err != nil {
			t.Fatal(err)
		}
		n++
		return n == pieces
	})
	if res := response(t, bufio.NewReader(conn)); res.StatusCode != 204 {
		t.Errorf("got %s", res.Status)
	}
}

// What a client does not read is held for the time of a stall, and no more of it than
// a page: not the stream.
func TestReaderThatStopsReadingIsCut(t *testing.T) {
	// More than fits between two sockets: what fits there is no longer held.
	const readers, size = 2, 10 << 20
	for _, tt := range []struct {
		name, contentType, query string
		page                     int
	}{
		{"catch-up", "application/octet-stream", "", size},
		{"catch-up, JSON", "application/json", "", size},
		{"long-poll", "application/octet-stream", "?live=long-poll&offset=-1", size},
		{"SSE", "text/plain", "?live=sse&offset=-1", 256 << 10},
		{"SSE, base64", "application/octet-stream", "?live=sse&offset=-1", 256 << 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			metrics := prometheus.NewRegistry()
			_, hot := newTiers(t)
			c, _ := connectTo(t, api.Options{
				Store:      tier.New(tier.Options{Hot: hot, ReadBytes: tt.page}),
				Registerer: metrics, WriteStallTimeout: 300 * time.Millisecond,
			})
			c.create("/ds/trial/s", tt.contentType, `"`+strings.Repeat("m", size-3)+`"`)
			ended := sample(t, metrics, "firn_http_requests_total")
			var stalled []net.Conn
			for range readers {
				conn := c.dial("GET /ds/trial/s" + tt.query + " HTTP/1.1\r\nHost: x\r\n\r\n")
				if res := response(t, bufio.NewReaderSize(conn, 1024)); res.StatusCode != 200 {
					t.Fatalf("got %s", res.Status)
				}
				stalled = append(stalled, conn)
			}
			every(t, 5*time.Millisecond, "all are cut", func() bool {
				return sample(t, metrics, "firn_http_requests_total") == ended+readers
			})
			arrived := int64(0)
			for _, conn := range stalled {
				n, _ := io.Copy(io.Discard, conn)
				if n > size*9/10 {
					t.Errorf("%d bytes were on their way", n)
				}
				if arrived += n; strings.Contains(tt.name, "base64") {
					arrived -= n / 4
				}
			}
			// What was read from the store and has not arrived is what the readers held.
			if held := int64(sample(t, metrics, "firn_http_page_bytes_total")) - arrived; held > int64(readers*(tt.page+tt.page/4)) {
				t.Errorf("%d stalled readers of pages of %d KiB held %d KiB", readers, tt.page>>10, held>>10)
			}
			c.want(200, "HEAD", "/ds/trial/s", "")
		})
	}
}

// A header that never ends is cut as well; so is a connection that never asks.
func TestSlowHeaderIsCut(t *testing.T) {
	c, _ := connect(t, api.Options{HeaderTimeout: idle})
	conn := c.dial("GET /ds/trial HTTP/1.1\r\nHost: x\r\n")
	ended := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(conn)
		ended <- all
	}()
	var got []byte
	every(t, idle/10, "the cut", func() bool {
		select {
		case got = <-ended:
			return true
		default:
			io.WriteString(conn, "X: y\r\n")
			return false
		}
	})
	if strings.Contains(string(got), " 200 ") {
		t.Errorf("got %q", got)
	}
	if got, err := io.ReadAll(c.dial("")); err != nil {
		t.Errorf("a connection that asks for nothing: %q, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c.start(ctx, "GET", "/ds/trial", "").Body.Close()
}
