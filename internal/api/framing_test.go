package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"firn/internal/api"
)

// chunks frames a body in chunks of one byte, with an extension and a trailer that
// nobody asked for.
func chunks(body string) string {
	var b strings.Builder
	for i := range len(body) {
		fmt.Fprintf(&b, "1;ext=\"x\"\r\n%c\r\n", body[i])
	}
	return b.String() + "0\r\nStream-Closed: true\r\n\r\n"
}

// TestChunkedBodies sends bodies whose length is not declared, empty ones too: what a
// body is shows only when it has been read.
func TestChunkedBodies(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const text, json, closed = "Content-Type: text/plain", "Content-Type: application/json", "Stream-Closed: true"
	producer := "Producer-Id: p\r\nProducer-Epoch: 0\r\nProducer-Seq: "
	for _, tt := range []struct {
		request, header, body string
		status                int
	}{
		{"PUT /ds/trial/text", text, "first", 201},
		{"PUT /ds/trial/empty", text, "", 201},
		{"PUT /ds/trial/json", json, "[1,", 400},
		{"PUT /ds/trial/json", json, "", 201},
		{"PUT /ds/trial/json", json, "", 200},
		{"POST /ds/trial/text", text, " second", 204},
		{"POST /ds/trial/text", text, "", 400},
		{"POST /ds/trial/text", "", "", 400},
		{"POST /ds/trial/text", text + "\r\n" + producer + "0", "", 400},
		{"POST /ds/trial/text", text + "\r\n" + producer + "0", " third", 200},
		{"POST /ds/trial/text", text + "\r\n" + producer + "0", " third", 204},
		{"POST /ds/trial/text", "", "x", 400},
		{"POST /ds/trial/missing", text, "", 400},
		{"POST /ds/trial/missing", text, "x", 404},
		{"POST /ds/trial/json", json, "[1,[2]]", 204},
		{"POST /ds/trial/json", json, "[]", 400},
		{"POST /ds/trial/json", json, "[1,", 400},
		{"POST /ds/trial/json", "Content-Type: image/png\r\n" + closed, "", 204},
		{"POST /ds/trial/json", closed, "", 204},
		{"POST /ds/trial/text", text + "\r\n" + closed, " end", 204},
		{"GET /ds/trial/text", "", "x", 400},
	} {
		conn := c.dial(tt.request + " HTTP/1.1\r\nHost: x\r\n" + strings.TrimPrefix(tt.header+"\r\n", "\r\n") + "Transfer-Encoding: chunked\r\n\r\n" + chunks(tt.body))
		if res := response(t, bufio.NewReader(conn)); res.StatusCode != tt.status {
			b, _ := io.ReadAll(res.Body)
			t.Errorf("%s, %q, %q: got %s %s, want %d", tt.request, tt.header, tt.body, res.Status, b, tt.status)
		}
		conn.Close()
	}
	for path, want := range map[string]string{"/ds/trial/text": "first second third end", "/ds/trial/json": "[1,[2]]", "/ds/trial/empty": ""} {
		a := c.want(200, "GET", path, "")
		if closed := a.header.Get("Stream-Closed") == "true"; a.body != want || closed != (want != "") {
			t.Errorf("%s holds %q, closed %t", path, a.body, closed)
		}
	}
}

// TestCutBodiesChangeNothing has what TestCutBody, of the reading alone, leaves: after
// each kind of broken body the stream, its producer and its Stream-Seq are as before.
func TestCutBodiesChangeNothing(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "application/json", "[1]")
	for name, body := range map[string]string{
		"too short":             "Content-Length: 100\r\n\r\n[2]",
		"nothing of it":         "Content-Length: 3\r\n\r\n",
		"no last chunk":         "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\n",
		"half of a chunk":       "Transfer-Encoding: chunked\r\n\r\n30\r\n[2]",
		"chunk without an end":  "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]0\r\n\r\n",
		"no number":             "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\nxyz\r\n\r\n",
		"negative number":       "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\n-1\r\n\r\n",
		"number of 17 digits":   "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\n00000000000000000\r\n\r\n",
		"last chunk, cut":       "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\n0\r\n",
		"trailer, cut":          "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\n0\r\nX: y",
		"trailer without colon": "Transfer-Encoding: chunked\r\n\r\n3\r\n[2]\r\n0\r\nX\r\n\r\n",
	} {
		for _, target := range []string{
			"POST /ds/trial/s HTTP/1.1\r\nStream-Closed: true\r\nStream-Seq: 9\r\nProducer-Id: p\r\nProducer-Epoch: 9\r\nProducer-Seq: 0\r\n",
			"PUT /ds/trial/new HTTP/1.1\r\n",
		} {
			conn := c.dial(target + "Host: x\r\nContent-Type: application/json\r\n" + body)
			conn.(interface{ CloseWrite() error }).CloseWrite()
			in := bufio.NewReader(conn)
			if res, err := http.ReadResponse(in, nil); err == nil {
				if res.StatusCode < 400 {
					t.Errorf("%s: %.4s got %s", name, target, res.Status)
				}
				io.Copy(io.Discard, res.Body)
			}
			if more, err := io.ReadAll(in); err != nil || len(more) > 0 {
				t.Errorf("%s: after the answer comes %q, %v", name, more, err)
			}
			conn.Close()
		}
	}
	if a := c.want(200, "HEAD", "/ds/trial/s", ""); a.next() != tail || a.header.Get("Stream-Closed") != "" {
		t.Errorf("the stream is %v", a.header)
	}
	c.want(404, "HEAD", "/ds/trial/new", "")
	c.want(200, "POST", "/ds/trial/s", "2", "Content-Type: application/json", "Stream-Seq: 0", "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0")
}

// TestExpectContinue: a client that waits to be asked for its body is asked when it is
// wanted, and told at once when it is not.
func TestExpectContinue(t *testing.T) {
	c, _ := connect(t, api.Options{AppendBytes: 1000})
	c.create("/ds/trial/s", "text/plain", "")
	for _, tt := range []struct {
		name, request, header, body string
		status                      int // before the body is asked for; 100: it is
		after                       int
	}{
		{"append", "POST /ds/trial/s", "Content-Type: text/plain\r\nContent-Length: 3", "one", 100, 204},
		{"append in chunks", "POST /ds/trial/s", "Content-Type: text/plain\r\nTransfer-Encoding: chunked", "3\r\ntwo\r\n0\r\n\r\n", 100, 204},
		{"create", "PUT /ds/trial/new", "Content-Type: text/plain\r\nContent-Length: 3", "one", 100, 201},
		{"snapshot", "PUT /ds/trial/s/snapshot/0000000000000000_0000000000000000", "Content-Length: 3", "one", 100, 204},
		{"at the limit", "POST /ds/trial/s", "Content-Type: text/plain\r\nContent-Length: 1000", strings.Repeat("x", 1000), 100, 204},
		{"too large", "POST /ds/trial/s", "Content-Type: text/plain\r\nContent-Length: 1001", "", 413, 0},
		{"compressed", "POST /ds/trial/s", "Content-Type: text/plain\r\nContent-Length: 9\r\nContent-Encoding: gzip", "", 415, 0},
		{"half of a producer", "POST /ds/trial/s", "Content-Type: text/plain\r\nContent-Length: 9\r\nProducer-Id: p", "", 400, 0},
		{"broken TTL", "PUT /ds/trial/x", "Content-Length: 9\r\nStream-TTL: x", "", 400, 0},
		{"broken name", "PUT /ds/trial/..", "Content-Length: 9", "", 400, 0},
		{"no such method", "PATCH /ds/trial/s", "Content-Length: 9", "", 405, 0},
		{"read", "GET /ds/trial/s", "Content-Length: 9", "", 400, 0},
		{"preflight", "OPTIONS /ds/trial/s", "Content-Length: 9", "", 204, 0},
		{"snapshot of nothing", "PUT /ds/trial/missing/snapshot/0000000000000000_0000000000000000", "Content-Length: 9", "", 404, 0},
	} {
		conn := c.dial(tt.request + " HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\n" + tt.header + "\r\n\r\n")
		in := bufio.NewReader(conn)
		res := response(t, in)
		if res.StatusCode != tt.status {
			t.Errorf("%s: first answer is %s, want %d", tt.name, res.Status, tt.status)
		}
		if res.StatusCode == 100 {
			if _, err := io.WriteString(conn, tt.body); err != nil {
				t.Fatal(err)
			}
			if res := response(t, in); res.StatusCode != tt.after {
				t.Errorf("%s: then %s, want %d", tt.name, res.Status, tt.after)
			}
		} else if !res.Close {
			// What comes next could be the body or a request: nobody can tell.
			t.Errorf("%s: the connection is kept", tt.name)
		}
		conn.Close()
	}
	want := "onetwo" + strings.Repeat("x", 1000)
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != want {
		t.Errorf("stream holds %.40q", got)
	}
}
