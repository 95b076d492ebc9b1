package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"firn/pkg/stream"
)

// readServer reads each body with b and reports it or its error.
func readServer(t *testing.T, b *bodies) (url string, got <-chan string) {
	t.Helper()
	results := make(chan string, 100)
	s := &Server{bodies: b, opts: Options{}.withDefaults()}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := newAnswer(w, r, time.Minute)
		body, err := b.read(a, r)
		if err != nil {
			results <- err.Error()
			s.fail(a, r, err)
			return
		}
		results <- fmt.Sprintf("%d bytes", len(body.bytes))
		body.release()
		a.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(func() {
		if n := b.used.Load(); n != 0 {
			t.Errorf("%d bytes still counted", n)
		}
	})
	t.Cleanup(srv.Close)
	return srv.URL, results
}

// chunked hides the length of a body.
func chunked(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }

func TestReadBody(t *testing.T) {
	const limit = 200_000
	tests := []struct {
		name   string
		body   io.Reader
		want   string
		status int
	}{
		{"empty", strings.NewReader(""), "0 bytes", 204},
		{"empty, chunked", chunked(""), "0 bytes", 204},
		{"small", strings.NewReader("x"), "1 bytes", 204},
		{"one buffer", strings.NewReader(strings.Repeat("x", minBuffer)), "4096 bytes", 204},
		{"first buffer", strings.NewReader(strings.Repeat("x", firstBuffer)), "65536 bytes", 204},
		{"at the limit", strings.NewReader(strings.Repeat("x", limit)), "200000 bytes", 204},
		{"at the limit, chunked", chunked(strings.Repeat("x", limit)), "200000 bytes", 204},
		{"over the limit", strings.NewReader(strings.Repeat("x", limit+1)), errBodyTooLarge.Error(), 413},
		{"over the limit, chunked", chunked(strings.Repeat("x", limit+1)), errBodyTooLarge.Error(), 413},
		{"far over the limit", strings.NewReader(strings.Repeat("x", 10<<20)), errBodyTooLarge.Error(), 413},
		{"far over the limit, chunked", chunked(strings.Repeat("x", 10<<20)), errBodyTooLarge.Error(), 413},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, got := readServer(t, newBodies(limit, 4*limit, time.Minute))
			res, err := http.Post(url, "text/plain", tt.body)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if g := <-got; g != tt.want || res.StatusCode != tt.status {
				t.Errorf("got %s, %d, want %s, %d", g, res.StatusCode, tt.want, tt.status)
			}
		})
	}
}

func TestReadBodyKeepsContent(t *testing.T) {
	b := newBodies(16<<20, 256<<20, time.Minute)
	for _, n := range []int{1, 4095, 4096, 4097, 65535, 65536, 1 << 20, 5 << 20, 16 << 20} {
		want := make([]byte, n)
		for i := range want {
			want[i] = byte(i ^ i>>8 ^ i>>16)
		}
		for _, length := range []int64{int64(n), -1} {
			r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(want))
			r.ContentLength = length
			got, err := b.read(newAnswer(httptest.NewRecorder(), r, time.Minute), r)
			if err != nil || !bytes.Equal(got.bytes, want) {
				t.Fatalf("%d bytes, length %d: content differs, %v", n, length, err)
			}
			got.release()
		}
	}
	if n := b.used.Load(); n != 0 {
		t.Errorf("%d bytes still counted", n)
	}
}

func TestInflightIsBounded(t *testing.T) {
	b := newBodies(1<<20, 3*minBuffer, time.Minute)
	var held []*body
	for range 3 {
		y, err := b.get(1)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, y)
	}
	if _, err := b.get(1); err != errInflight {
		t.Errorf("fourth buffer: got %v", err)
	}
	held[0].release()
	y, err := b.get(minBuffer)
	if err != nil {
		t.Errorf("after a release: %v", err)
	}
	y.release()
	if y, err := newBodies(1, minBuffer-1, time.Minute).get(1); err != errInflight {
		t.Errorf("one byte short: got %v, %v", y, err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 2*minBuffer)))
	if _, err := b.read(newAnswer(httptest.NewRecorder(), r, time.Minute), r); err != errInflight {
		t.Errorf("body that outgrows the rest: got %v", err)
	}
	held[1].release()
	held[2].release()
	if n := b.used.Load(); n != 0 {
		t.Errorf("%d bytes still counted", n)
	}
}

// dial sends a request head and what there is of a body over a connection of its own.
func dial(t *testing.T, url, request string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

func TestStalledBody(t *testing.T) {
	url, got := readServer(t, newBodies(1<<20, 1<<20, 50*time.Millisecond))
	c := dial(t, url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := <-got; g != errBodyTimeout.Error() || res.StatusCode != http.StatusRequestTimeout || !res.Close {
		t.Errorf("got %s, %d, close %t", g, res.StatusCode, res.Close)
	}
}

func TestStalledBodyOfRefusedRequest(t *testing.T) {
	url, got := readServer(t, newBodies(1<<20, 1<<20, 50*time.Millisecond))
	c := dial(t, url, "POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 100\r\n\r\nonly this")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if g := <-got; g != errEncoding.Error() || res.StatusCode != http.StatusUnsupportedMediaType || !res.Close {
		t.Errorf("got %s, %d, close %t", g, res.StatusCode, res.Close)
	}
}

func TestCutBody(t *testing.T) {
	tests := map[string]string{
		"length":  "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this",
		"chunked": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"framing": "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\nhello\r\n0\r\n\r\n",
	}
	for name, request := range tests {
		t.Run(name, func(t *testing.T) {
			url, got := readServer(t, newBodies(1<<20, 1<<20, time.Minute))
			c := dial(t, url, request)
			c.CloseWrite()
			if g := <-got; !strings.HasPrefix(g, errBodyCut.Error()) {
				t.Errorf("got %s", g)
			}
		})
	}
}

func TestExpectContinueIsNotAskedInVain(t *testing.T) {
	url, _ := readServer(t, newBodies(10, 1<<20, time.Minute))
	tests := map[string]string{
		"Content-Length: 11":                          "HTTP/1.1 413",
		"Content-Length: 5\r\nContent-Encoding: gzip": "HTTP/1.1 415",
		"Content-Length: 10":                          "HTTP/1.1 100",
	}
	for header, want := range tests {
		c := dial(t, url, "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"+header+"\r\n\r\n")
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%q: got %q, %v, want %s", header, line, err, want)
		}
		c.Close()
	}
}

func TestUploadLimit(t *testing.T) {
	for _, n := range []int{0, 9, 10} {
		u := &upload{body: strings.NewReader(strings.Repeat("x", n)), limit: 10}
		if got, err := io.ReadAll(u); len(got) != n || err != nil || u.err != nil {
			t.Errorf("%d bytes: got %d, %v, %v", n, len(got), err, u.err)
		}
	}
	u := &upload{body: strings.NewReader(strings.Repeat("x", 11)), limit: 10}
	if _, err := io.ReadAll(u); !errors.Is(err, stream.ErrSnapshotTooLarge) || u.err != err {
		t.Errorf("one over: got %v, %v", err, u.err)
	}
	if _, err := u.Read(make([]byte, 1)); !errors.Is(err, stream.ErrSnapshotTooLarge) {
		t.Errorf("read again: got %v", err)
	}
}
