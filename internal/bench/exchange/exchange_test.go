package exchange_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"firn/internal/bench/exchange"
)

func dial(t *testing.T, url string, fields ...string) (*exchange.Endpoint, *exchange.Conn) {
	t.Helper()
	e, err := exchange.Parse(url, fields...)
	if err != nil {
		t.Fatal(err)
	}
	c, err := e.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return e, c
}

// Bodies of all lengths around the sizes of buffers come whole, with a length and in
// chunks, over one connection.
func TestBodies(t *testing.T) {
	conns := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Fixed") != "yes" || r.Header.Get("X-Own") != "a" {
			t.Errorf("request %v, %v", r.Header, err)
		}
		w.Header().Set("Stream-Next-Offset", fmt.Sprint(len(body)))
		w.Header().Set("Stream-Up-To-Date", "true")
		if r.URL.Path == "/base/chunked" {
			for len(body) > 0 {
				n := min(len(body), 1000)
				w.Write(body[:n])
				w.(http.Flusher).Flush()
				body = body[n:]
			}
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns++
		}
	}
	srv.Start()
	defer srv.Close()
	e, c := dial(t, srv.URL+"/base/", "X-Fixed: yes")
	for _, target := range []string{"/plain", "/chunked"} {
		for _, n := range []int{0, 1, 999, 1000, 1001, 4095, 4096, 4097, 256 << 10, 300 << 10} {
			want := bytes.Repeat([]byte("x"), n)
			var got []byte
			a, err := c.Do(e.Request("POST", target, want, "X-Own: a"), func(b []byte) { got = append(got, b...) })
			if err != nil {
				t.Fatal(err)
			}
			if !a.OK() || string(a.Next) != fmt.Sprint(n) || !a.UpToDate || a.Body != int64(n) || !bytes.Equal(got, want) {
				t.Errorf("%s of %d bytes: status %d, next %q, %d bytes", target, n, a.Status, a.Next, a.Body)
			}
		}
	}
	if conns != 1 {
		t.Errorf("%d connections", conns)
	}
}

// A connection that the server closes is dialled again.
func TestClosedConnection(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusNoContent)
	}))
	defer srv.Close()
	e, c := dial(t, srv.URL)
	for range 3 {
		if a, err := c.Do(e.Request("GET", "/", nil), nil); err != nil || a.Status != 204 || !a.Closes {
			t.Fatalf("%+v, %v", a, err)
		}
	}
}

// raw answers every connection with the same bytes, and closes it.
func raw(t *testing.T, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 4096))
			io.WriteString(c, answer)
			c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

func TestBrokenAnswers(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   error
	}{
		{"", io.EOF},
		{"HTTP/1.1 200 OK\r\nContent-Le", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n123", io.ErrUnexpectedEOF},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", exchange.ErrAnswer},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", exchange.ErrAnswer},
		{"HTTP/1.1 200 OK\r\n\r\n", exchange.ErrAnswer},
		{"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", exchange.ErrAnswer},
		{"HTTP/1.1 2x0 OK\r\n\r\n", exchange.ErrAnswer},
		{"SSH-2.0-x\r\n\r\n", exchange.ErrAnswer},
	} {
		e, conn := dial(t, raw(t, c.answer))
		if _, err := conn.Do(e.Request("GET", "/", nil), nil); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.answer, err, c.want)
		}
	}
}

// Lines come out whole however the chunks cut them.
func TestLines(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, piece := range []string{"event: da", "ta\ndata:[1]\n\n", ":\n", "x"} {
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	e, c := dial(t, srv.URL)
	if _, err := c.Begin(e.Request("GET", "/", nil)); err != nil {
		t.Fatal(err)
	}
	lines := c.Lines()
	var got []string
	for {
		line, err := lines.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("ended with %v", err)
			}
			break
		}
		got = append(got, string(line))
	}
	if strings.Join(got, "|") != "event: data|data:[1]||:" {
		t.Errorf("got %q", got)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ url, field string }{
		{"127.0.0.1:80", "A: b"}, {"ftp://x", "A: b"}, {"http://", "A: b"}, {"http://x?y=1", "A: b"}, {"http://x", "A"}, {"http://x", "A: b\r\nC: d"},
	} {
		if e, err := exchange.Parse(c.url, c.field); err == nil {
			t.Errorf("%s with %q is %v", c.url, c.field, e)
		}
	}
}

// The client must not be what a measurement measures.
func TestExchangeAllocatesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		buf := make([]byte, 4096)
		answer := []byte("HTTP/1.1 204 No Content\r\nDate: today\r\nStream-Next-Offset: 0000000000000001_0000000000000002\r\n\r\n")
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			c.Write(answer)
		}
	}()
	e, c := dial(t, "http://"+l.Addr().String())
	request := e.Request("POST", "/x", []byte("body"))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := c.Do(request, nil); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations an exchange", n)
	}
}
