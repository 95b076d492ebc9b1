package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"firn/internal/api"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/clienttest"
	"firn/pkg/stream"
)

// decoded undoes the coding of an answer.
func (a answer) decoded(t *testing.T) string {
	t.Helper()
	body, err := undo(a.header.Get("Content-Encoding"), strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func undo(coding string, r io.Reader) ([]byte, error) {
	switch coding {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	case "zstd":
		z, err := zstd.NewReader(r)
		if err != nil {
			return nil, err
		}
		defer z.Close()
		return io.ReadAll(z)
	case "":
		return io.ReadAll(r)
	}
	return nil, fmt.Errorf("unknown coding %q", coding)
}

// records is a JSON array of about n bytes.
func records(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, `,{"id":%d,"user":"u-%d","event":"page_view"}`, i, i*7919%5000)
	}
	return "[" + b.String()[1:] + "]"
}

// sameButCoded compares an answer in a coding with the one as it is.
func sameButCoded(t *testing.T, coding string, coded, plain answer) {
	t.Helper()
	if got := coded.header.Get("Content-Encoding"); got != coding {
		t.Fatalf("coding %q, want %q", got, coding)
	}
	if got := coded.decoded(t); got != plain.body || coded.header.Get("Content-Length") != strconv.Itoa(len(coded.body)) {
		t.Errorf("%d bytes decoded, want %d; length %s", len(got), len(plain.body), coded.header.Get("Content-Length"))
	}
	if tag := plain.header.Get("ETag"); tag != "" && coded.header.Get("ETag") != strings.TrimSuffix(tag, `"`)+"-"+coding+`"` {
		t.Errorf("tag %s, of the plain answer %s", coded.header.Get("ETag"), tag)
	}
	for field := range plain.header {
		if field == "Content-Length" || field == "Etag" || field == "Date" {
			continue
		}
		if got, want := coded.header.Get(field), plain.header.Get(field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if plain.header.Get("Vary") != "Accept-Encoding" || plain.header.Get("Content-Encoding") != "" {
		t.Errorf("plain answer %v", plain.header)
	}
}

var bothCodings = []string{"gzip", "zstd"}

func TestCompressedReads(t *testing.T) {
	srv := clienttest.Serve(t, clienttest.Options{API: api.Options{Clock: fixedClock}})
	c := newClient(t, srv.URL())
	c.create("/ds/trial/json", "application/json", records(100<<10))
	c.create("/ds/trial/bytes", "application/octet-stream", strings.Repeat("\x00\x01\x02\x03", 10000))
	tail := c.create("/v1/stream/text/lines", "text/plain; charset=utf-8", strings.Repeat("a line of text\n", 10000))
	middle := "?offset=" + tail[:17] + "0000000000075000"
	paths := []string{
		"/ds/trial/json", "/ds/trial/json?offset=-1&live=long-poll", "/ds/trial/bytes",
		"/v1/stream/text/lines", "/v1/stream/text/lines" + middle, "/v1/stream/text/lines" + middle + "&live=long-poll",
	}
	check := func(tier string) {
		for _, path := range paths {
			for _, coding := range bothCodings {
				t.Run(tier+path+" "+coding, func(t *testing.T) {
					plain := c.want(200, "GET", path, "")
					if timing := plain.header.Get("Server-Timing"); !strings.Contains(timing, tier) {
						t.Fatalf("comes from %s", timing)
					}
					coded := c.want(200, "GET", path, "", "Accept-Encoding: "+coding)
					sameButCoded(t, coding, coded, plain)
					if len(coded.body) > len(plain.body)/3 {
						t.Errorf("%d bytes became %d", len(plain.body), len(coded.body))
					}
					c.conditional(t, path, coding, coded, plain)
				})
			}
		}
	}
	check("hot")
	for _, n := range []stream.Name{{Bucket: "trial", ID: "json"}, {Bucket: "trial", ID: "bytes"}, {Bucket: "default", ID: "text/lines"}} {
		if err := srv.Evict(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	check("cold")
}

// conditional asks again with the tags of an answer in a coding and as it is.
func (c *client) conditional(t *testing.T, path, coding string, coded, plain answer) {
	t.Helper()
	for _, tag := range []string{plain.header.Get("ETag"), coded.header.Get("ETag")} {
		for _, accepted := range []string{coding, "gzip, deflate, br, zstd", "*"} {
			same := c.want(304, "GET", path, "", "Accept-Encoding: "+accepted, `If-None-Match: "x", W/`+tag)
			if same.header.Get("ETag") != tag || same.header.Get("Vary") != "Accept-Encoding" || same.header.Get("Content-Encoding") != "" {
				t.Errorf("304 for %s: %v", tag, same.header)
			}
		}
		c.want(304, "GET", path, "", "If-None-Match: "+tag)
	}
	// Who does not take the coding has no use for a copy in it.
	if a := c.want(200, "GET", path, "", "Accept-Encoding: identity", "If-None-Match: "+coded.header.Get("ETag")); a.body != plain.body {
		t.Errorf("without codings: %v", a.header)
	}
}

// What is not worth while, or must reach the client piece by piece, goes as it is.
func TestAnswersThatAreNotCompressed(t *testing.T) {
	c, _ := connect(t, api.Options{})
	noise := make([]byte, 64<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	text := strings.Repeat("x", 1<<10)
	c.create("/ds/trial/small", "text/plain", text[1:])
	c.create("/ds/trial/large", "text/plain", text)
	c.create("/ds/trial/picture", "image/png", text)
	c.create("/ds/trial/noise", "application/octet-stream", string(noise))
	for _, tt := range []struct {
		path, accepted string
		want           string
	}{
		{"/ds/trial/large", "gzip", "gzip"},
		{"/ds/trial/large", "identity;q=0, *", "gzip"},
		{"/ds/trial/large", "identity;q=0", ""},
		{"/ds/trial/large", "br, gzip;q=0", ""},
		{"/ds/trial/large", "", ""},
		{"/ds/trial/large?offset=now", "zstd, identity;q=0", ""},
		{"/ds/trial/large?offset=-1&live=sse", "gzip, identity;q=0", ""},
		{"/ds/trial/large/bootstrap", "gzip, identity;q=0", ""},
		{"/ds/trial/small", "zstd, gzip", ""},
		{"/ds/trial/small", "zstd, identity;q=0", "zstd"},
		{"/ds/trial/picture", "gzip", ""},
		{"/ds/trial/picture", "gzip, identity;q=0", "gzip"},
		{"/ds/trial/noise", "gzip, zstd", ""},
		{"/ds/trial/noise", "gzip, *;q=0", "gzip"},
	} {
		t.Run(tt.path+" "+tt.accepted, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			res := c.start(ctx, "GET", tt.path, "", "Accept-Encoding: "+tt.accepted)
			defer res.Body.Close()
			if got := res.Header.Get("Content-Encoding"); res.StatusCode != 200 || got != tt.want {
				t.Errorf("got %s, coding %q, want %q", res.Status, got, tt.want)
			}
			live := strings.Contains(tt.path, "sse") || strings.Contains(tt.path, "bootstrap")
			if got := res.Header.Get("Vary"); (got == "Accept-Encoding") == live {
				t.Errorf("varies by %q", got)
			}
		})
	}
}

func TestCompressionTurnedOff(t *testing.T) {
	c, _ := connect(t, api.Options{NoCompression: true})
	c.create("/ds/trial/s", "text/plain", strings.Repeat("x", 5000))
	a := c.want(200, "GET", "/ds/trial/s", "", "Accept-Encoding: gzip, identity;q=0")
	if a.header.Get("Content-Encoding") != "" || a.header.Get("Vary") != "" || len(a.body) != 5000 {
		t.Errorf("got %v", a.header)
	}
	// It may have been on when the client came first.
	coded := strings.TrimSuffix(a.header.Get("ETag"), `"`) + `-gzip"`
	c.want(304, "GET", "/ds/trial/s", "", "Accept-Encoding: gzip", "If-None-Match: "+coded)
}

func TestCompressedListing(t *testing.T) {
	c, _ := connect(t, api.Options{CORS: api.CORS{Origins: []string{"https://app.example"}}})
	for i := range 30 {
		c.create(fmt.Sprintf("/ds/trial/stream-%d", i), "text/plain", "x")
	}
	const path = "/ds/trial/streams"
	plain := c.want(200, "GET", path, "")
	if got := plain.header.Values("Vary"); strings.Join(got, ", ") != "Origin, Accept-Encoding" {
		t.Errorf("varies by %q", got)
	}
	for _, coding := range bothCodings {
		for _, method := range []string{"GET", "HEAD"} {
			a := c.want(200, method, path, "", "Accept-Encoding: "+coding)
			if a.header.Get("Content-Encoding") != coding || method == "GET" && a.decoded(t) != plain.body {
				t.Errorf("%s %s: %v", method, coding, a.header)
			}
		}
	}
}

func TestCompressedProblem(t *testing.T) {
	c, _ := connect(t, api.Options{})
	a := c.want(404, "GET", "/ds/trial/missing", "", "Accept-Encoding: gzip")
	if a.code() != "stream_not_found" || a.header.Get("Content-Encoding") != "" || a.header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("a few bytes: %s, %v", a.body, a.header)
	}
	a = c.want(404, "GET", "/ds/trial/missing", "", "Accept-Encoding: zstd, identity;q=0")
	var p struct{ Code string }
	if err := json.Unmarshal([]byte(a.decoded(t)), &p); err != nil || p.Code != "stream_not_found" || a.header.Get("Content-Encoding") != "zstd" {
		t.Errorf("identity refused: %q, %v, %v", a.body, err, a.header)
	}
}

// The client of net/http asks for gzip by itself, and undoes it.
func TestTransparentClient(t *testing.T) {
	c, _ := connect(t, api.Options{})
	body := records(50 << 10)
	c.create("/ds/trial/s", "application/json", body)
	for _, http2 := range []bool{false, true} {
		var p http.Protocols
		p.SetHTTP1(!http2)
		p.SetUnencryptedHTTP2(http2)
		tr := &http.Transport{Protocols: &p}
		t.Cleanup(tr.CloseIdleConnections)
		c.http = &http.Client{Transport: tr}
		res := c.start(t.Context(), "GET", "/ds/trial/s", "")
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(got) != body || !res.Uncompressed {
			t.Errorf("HTTP/2 %v: %d bytes, %v, uncompressed %v", http2, len(got), err, res.Uncompressed)
		}
		c.want(304, "GET", "/ds/trial/s", "", "If-None-Match: "+res.Header.Get("ETag"))
	}
}

func TestCompressedSnapshots(t *testing.T) {
	c, _ := connect(t, api.Options{})
	at := c.create("/ds/trial/s", "text/plain", "x")
	path := "/ds/trial/s/snapshot/" + at
	blob := records(3 << 20)
	c.want(204, "PUT", path, blob, "Content-Type: application/vnd.state+json")
	plain := c.want(200, "GET", path, "")
	for _, coding := range bothCodings {
		coded := c.want(200, "GET", path, "", "Accept-Encoding: "+coding)
		if coded.header.Get("Content-Length") != "" {
			t.Errorf("%s: length %s", coding, coded.header.Get("Content-Length"))
		}
		coded.header.Set("Content-Length", strconv.Itoa(len(coded.body)))
		sameButCoded(t, coding, coded, plain)
		c.conditional(t, path, coding, coded, plain)
		head := c.want(200, "HEAD", path, "", "Accept-Encoding: "+coding)
		if head.header.Get("ETag") != coded.header.Get("ETag") || head.header.Get("Content-Encoding") != coding || head.header.Get("Content-Length") != "" {
			t.Errorf("HEAD: %v", head.header)
		}
	}
	for _, tt := range []struct{ contentType, blob, accepted, want string }{
		{"application/octet-stream", blob, "gzip", ""}, // nobody knows before it is sent
		{"application/octet-stream", blob, "gzip, identity;q=0", "gzip"},
		{"text/plain", blob[:1<<10], "gzip", "gzip"},
		{"text/plain", blob[:1<<10-1], "gzip", ""},
		{"text/plain", "", "gzip, identity;q=0", ""},
	} {
		c.want(204, "PUT", path, tt.blob, "Content-Type: "+tt.contentType)
		a := c.want(200, "GET", path, "", "Accept-Encoding: "+tt.accepted)
		if got := a.header.Get("Content-Encoding"); got != tt.want || a.decoded(t) != tt.blob {
			t.Errorf("%s of %d bytes for %s: %v", tt.contentType, len(tt.blob), tt.accepted, a.header)
		}
	}
}

// A blob that fails on its way must not look whole, coded or not, and its encoder must
// not be lost.
func TestBrokenSnapshotIsNotWhole(t *testing.T) {
	bucket := fault.New(mem.New(mem.Options{}))
	store, _ := newTiersOver(t, bucket)
	c, _ := connectTo(t, api.Options{Store: store})
	at := c.create("/ds/trial/s", "text/plain", "x")
	path := "/ds/trial/s/snapshot/" + at
	blob := records(4 << 20)
	c.want(204, "PUT", path, blob, "Content-Type: application/json")
	for i := range 10 { // more often than there are encoders
		for _, coding := range append(bothCodings, "identity") {
			broken := fault.Fault{Op: fault.Get, Skip: 2, Kind: fault.Cut, At: 1000}
			if i%2 == 0 {
				broken.Skip, broken.Kind = 3, fault.Flip // which shows when all is sent
			}
			bucket.Script(broken)
			res := c.start(t.Context(), "GET", path, "", "Accept-Encoding: "+coding)
			got, err := io.ReadAll(res.Body)
			res.Body.Close()
			if res.StatusCode != 200 || err == nil {
				t.Fatalf("%s: got %s, %d bytes that end well", coding, res.Status, len(got))
			}
			if text, err := undo(res.Header.Get("Content-Encoding"), bytes.NewReader(got)); coding != "identity" && err == nil {
				t.Fatalf("%s: %d bytes decode well", coding, len(text))
			}
		}
	}
	if left := bucket.Unfired(); len(left) > 0 {
		t.Fatalf("not fired: %v", left)
	}
	for _, coding := range bothCodings {
		if a := c.want(200, "GET", path, "", "Accept-Encoding: "+coding); a.decoded(t) != blob {
			t.Errorf("%s: not the blob", coding)
		}
	}
}

// Clients that leave in the middle cost no encoder, and nobody a log line.
func TestClientLeavesCompressedAnswers(t *testing.T) {
	c, _ := connect(t, api.Options{Logger: slog.New(slog.NewTextHandler(failing{t}, nil))})
	at := c.create("/ds/trial/s", "text/plain", "x")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, wordy(12<<20), "Content-Type: text/plain")
	c.create("/ds/trial/page", "text/plain", wordy(4<<20))
	for _, path := range []string{"/ds/trial/s/snapshot/" + at, "/ds/trial/page"} {
		for i := range 10 { // more often than there are encoders
			ctx, leave := context.WithCancel(t.Context())
			res := c.start(ctx, "GET", path, "", "Accept-Encoding: "+bothCodings[i%2])
			if _, err := io.ReadFull(res.Body, make([]byte, 1000)); err != nil {
				t.Fatal(err)
			}
			leave()
			res.Body.Close()
		}
		every(t, 10*time.Millisecond, "an encoder is free for "+path, func() bool {
			return c.want(200, "GET", path, "", "Accept-Encoding: zstd").header.Get("Content-Encoding") == "zstd"
		})
	}
}

// wordy is text of n bytes that compresses to about a half.
func wordy(n int) string {
	noise := rand.NewChaCha8([32]byte{})
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%016x%016x is what they said\n", noise.Uint64(), noise.Uint64())
	}
	return b.String()[:n]
}

// failing takes the log of a server that has no reason to write any.
type failing struct{ t *testing.T }

func (f failing) Write(p []byte) (int, error) {
	f.t.Errorf("logged %s", p)
	return len(p), nil
}
