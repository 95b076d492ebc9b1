package trials_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

func TestTransport(t *testing.T) {
	t.Run("HT-751", cutUploads)
	t.Run("HT-86d", slowHeaders)
	t.Run("HT-2ba", slowBody)
	t.Run("HT-00d", encodedBodies)
	t.Run("HT-7e0", smuggledRequests)
	t.Run("HT-713", deadClients)
}

// cutUploads breaks uploads off in every way that a connection can end.
func cutUploads(t *testing.T) {
	s := serve(t)
	tails := map[string]string{
		"/ds/trial/text": s.create("/ds/trial/text", "text/plain", "whole"),
		"/ds/trial/json": s.create("/ds/trial/json", "application/json", "[1]"),
	}
	s.want(204, "PUT", "/ds/trial/text/snapshot/"+tails["/ds/trial/text"], "OLD")
	bodies := map[string]string{
		"chunked":        "Transfer-Encoding: chunked\r\n\r\n3\r\n[2,\r\n2\r\n3]\r\n",
		"half a chunk":   "Transfer-Encoding: chunked\r\n\r\n50\r\n[2,3]",
		"declared":       "Content-Length: 100\r\n\r\n[2,3]",
		"declared, half": "Content-Length: 100\r\n\r\n" + strings.Repeat(" ", 40),
	}
	targets := []string{
		"POST /ds/trial/text HTTP/1.1\r\nContent-Type: text/plain\r\n",
		"POST /ds/trial/json HTTP/1.1\r\nContent-Type: application/json\r\n",
		"POST /ds/trial/text HTTP/1.1\r\nContent-Type: text/plain\r\n" + strings.Join(by("p", 0, 0), "\r\n") + "\r\n",
		"PUT /ds/trial/new HTTP/1.1\r\nContent-Type: text/plain\r\n",
		"PUT /ds/trial/text/snapshot/" + tails["/ds/trial/text"] + " HTTP/1.1\r\nContent-Type: text/plain\r\n",
	}
	for name, body := range bodies {
		for _, target := range targets {
			for _, end := range []string{"FIN", "RST", "half-close"} {
				c := s.dial()
				send(t, c, target+"Host: x\r\n"+body)
				switch end {
				case "FIN":
					c.Close()
				case "RST":
					c.SetLinger(0)
					c.Close()
				case "half-close":
					c.CloseWrite()
					for _, a := range answers(t, c) {
						if a.status < 400 {
							t.Errorf("%s, %.40q: got %d", name, target, a.status)
						}
					}
					c.Close()
				}
			}
		}
	}
	eventually(t, "all requests have ended", func() bool { return s.metric("firn_http_requests_total") >= float64(3*len(bodies)*len(targets)) })
	for path, tail := range tails {
		if got := s.tail(path); got != tail {
			t.Errorf("%s: tail is %s, was %s", path, got, tail)
		}
	}
	s.want(404, "HEAD", "/ds/trial/new", "")
	if got := s.want(200, "GET", "/ds/trial/text/snapshot/"+tails["/ds/trial/text"], "").body; got != "OLD" {
		t.Errorf("snapshot is %q", got)
	}
	s.produce(200, "/ds/trial/text", "text/plain", "first", 0)
}

// slowHeaders opens 100 connections (500 with -full) that never get to the end of a
// header, with a timeout of half a second where the default is ten.
func slowHeaders(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{HeaderTimeout: 500 * time.Millisecond} })
	s.create("/ds/trial/s", "text/plain", "")
	s.sender.CloseIdleConnections()
	quiet := runtime.NumGoroutine()
	var slow []net.Conn
	for i := range scaled(100, 500) {
		c := s.dial()
		send(t, c, "POST /ds/trial/s HTTP/1.1\r\nHost: x\r\nX: "[:i%40])
		slow = append(slow, c)
	}
	longest := time.Duration(0)
	for range 50 {
		began := time.Now()
		s.append("/ds/trial/s", "text/plain", "x")
		longest = max(longest, time.Since(began))
	}
	if longest > 5*time.Second {
		t.Errorf("an append took %v", longest)
	}
	for i, c := range slow {
		for _, a := range answers(t, c) {
			if a.status != 400 && a.status != 408 {
				t.Errorf("connection %d: got %d", i, a.status)
			}
		}
		c.Close()
	}
	s.sender.CloseIdleConnections()
	eventually(t, "goroutines return", func() bool { return runtime.NumGoroutine() <= quiet+2 })
	s.holds("/ds/trial/s", strings.Repeat("x", 50))
}

func slowBody(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{BodyIdleTimeout: 500 * time.Millisecond} })
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	slow := s.dial()
	send(t, slow, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1048576\r\n\r\n")
	for i := range 100 {
		if i%10 == 0 {
			send(t, slow, "slow byte ")
		}
		s.append(path, "text/plain", "x")
	}
	if got := answers(t, slow); len(got) != 1 || got[0].status != 408 {
		t.Errorf("slow body: got %+v", got)
	}
	s.holds(path, strings.Repeat("x", 100))
}

// encodedBodies has what internal/api's TestCheckEncoding leaves: nothing is stored,
// and no more is read of a bomb than of any other body.
func encodedBodies(t *testing.T) {
	s := serve(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for range scaled(4, 10<<10) {
		z.Write(make([]byte, 1<<20))
	}
	z.Close()
	for path, kind := range map[string]string{"/ds/trial/text": "text/plain", "/ds/trial/json": "application/json"} {
		tail := s.create(path, kind, "")
		for _, coding := range []string{"gzip", "br", "gzip, gzip", "frobnicate", "identity, gzip", "GZIP"} {
			for _, body := range []string{packed.String(), `{"plain":true}`} {
				a := s.want(415, "POST", path, body, "Content-Type: "+kind, "Content-Encoding: "+coding)
				if a.header.Get("Accept-Encoding") != "identity" {
					t.Errorf("%s: %v", coding, a.header)
				}
			}
			s.want(415, "PUT", "/ds/trial/new", "x", "Content-Type: "+kind, "Content-Encoding: "+coding)
		}
		if got := s.tail(path); got != tail {
			t.Errorf("tail is %s, was %s", got, tail)
		}
		s.want(204, "POST", path, `1`, "Content-Type: "+kind, "Content-Encoding: identity")
	}
	s.holds("/ds/trial/text", "1")
	s.holds("/ds/trial/json", "[1]")
	s.want(404, "HEAD", "/ds/trial/new", "")
}

// smuggledRequests sends a request whose end is a matter of opinion and, in its body or
// behind it, another one. However the first is answered, the other is not taken for one.
func smuggledRequests(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	const smuggled = "POST /ds/trial/s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nsmuggled"
	const post = "POST /ds/trial/s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
	tests := map[string]string{
		"length and chunks":         post + fmt.Sprintf("Content-Length: %d\r\n", 5+len(smuggled)) + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunks and length":         post + "Transfer-Encoding: chunked\r\n" + fmt.Sprintf("Content-Length: %d\r\n", 5+len(smuggled)) + "\r\n0\r\n\r\n" + smuggled,
		"length, chunks with bytes": post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + smuggled,
		"two lengths":               post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab" + smuggled,
		"a list of lengths":         post + "Content-Length: 1, 2\r\n\r\nab" + smuggled,
		"signed length":             post + "Content-Length: +2\r\n\r\nab" + smuggled,
		"xchunked":                  post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunked, chunked":          post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"chunked twice":             post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"identity":                  post + "Transfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nab" + smuggled,
		"bare LF after a chunk":     post + "Transfer-Encoding: chunked\r\n\r\n2\nab\n0\n\n" + smuggled,
		"signed chunk":              post + "Transfer-Encoding: chunked\r\n\r\n+2\r\nab\r\n0\r\n\r\n" + smuggled,
		"17 digits":                 post + "Transfer-Encoding: chunked\r\n\r\n00000000000000002\r\nab\r\n0\r\n\r\n" + smuggled,
		"huge chunk":                post + "Transfer-Encoding: chunked\r\n\r\n10000000000000002\r\nab\r\n0\r\n\r\n" + smuggled,
		"space before the colon":    post + "Content-Length : 2\r\n\r\nab" + smuggled,
		"body on GET":               "GET /ds/trial/s HTTP/1.1\r\nHost: x\r\nContent-Length: " + fmt.Sprint(len(smuggled)) + "\r\n\r\n" + smuggled,
		"chunks on GET":             "GET /ds/trial/s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"no host":                   "POST /ds/trial/s HTTP/1.1\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nab" + smuggled,
		"two hosts":                 "POST /ds/trial/s HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nab" + smuggled,
	}
	for name, request := range tests {
		c := s.dial()
		send(t, c, request)
		c.CloseWrite()
		got := answers(t, c)
		c.Close()
		served := name == "length, chunks with bytes"
		if len(got) != 1 || (got[0].status < 400) != served {
			t.Errorf("%s: %d answers: %+v", name, len(got), got)
		}
	}
	s.holds(path, "hello")
}

// deadClients leaves 200 waiting readers (5000 with -full) by FIN and by RST.
func deadClients(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{LongPollTimeout: time.Minute} })
	tail := s.create("/ds/trial/s", "text/plain", "x")
	s.sender.CloseIdleConnections()
	quiet := runtime.NumGoroutine()
	n := scaled(200, 5000)
	var all []*net.TCPConn
	for i := range n {
		c := s.dial()
		send(t, c, "GET /ds/trial/s?live="+[]string{"sse", "long-poll"}[i%2]+"&offset="+tail+" HTTP/1.1\r\nHost: x\r\n\r\n")
		all = append(all, c)
	}
	eventually(t, "all are waiting", func() bool { return s.metric("firn_http_live_readers") == float64(n) })
	for i, c := range all {
		if i%4 < 2 {
			c.SetLinger(0)
		}
		c.Close()
	}
	eventually(t, "nobody is left", func() bool {
		return s.metric("firn_http_live_readers") == 0 && runtime.NumGoroutine() <= quiet+2
	})
	s.append("/ds/trial/s", "text/plain", "y")
}
