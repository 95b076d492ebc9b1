package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/api"
)

// http2 speaks HTTP/2 without TLS (prior knowledge), over one connection.
func http2(t *testing.T) *http.Transport {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &p, DisableCompression: true, HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true}}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// TestHTTP2WithTLS lets the handshake choose, as browsers do.
func TestHTTP2WithTLS(t *testing.T) {
	o := api.Options{Store: newStore(t), LongPollTimeout: time.Millisecond}
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = api.NewHTTPServer(api.New(o).Handler(), o)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	c := &client{t: t, url: srv.URL, http: srv.Client()}
	c.want(201, "PUT", "/ds/trial", "")
	story(c, "HTTP/2.0")
	if got := c.want(201, "PUT", "/ds/trial/where", "").header.Get("Location"); got != srv.URL+"/ds/trial/where" {
		t.Errorf("Location is %q", got)
	}
}

func TestHTTP2WithPriorKnowledge(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Millisecond})
	c.http = &http.Client{Transport: http2(t)}
	story(c, "HTTP/2.0")
}

// story is each kind of request once.
func story(c *client, proto string) {
	c.t.Helper()
	const path = "/ds/trial/story"
	c.create(path, "text/plain", "one")
	tail := c.append(path, "text/plain", " two")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	c.t.Cleanup(cancel)
	res := c.start(ctx, "GET", path+"?offset=-1&live=sse", "")
	c.t.Cleanup(func() { res.Body.Close() })
	if res.Proto != proto {
		c.t.Errorf("speaks %s", res.Proto)
	}
	e := &events{t: c.t, lines: bufio.NewReader(res.Body)}
	if got, at := e.data(); got != "one two" || at.StreamNextOffset != tail {
		c.t.Errorf("got %q, %+v", got, at)
	}
	c.want(204, "GET", path+"?live=long-poll&offset="+tail, "")
	c.want(404, "HEAD", path+"x", "")
	c.want(415, "POST", path, "x", "Content-Encoding: gzip")
	// Bodies of unknown length, one of which turns out to be empty.
	send := func(body string, header ...string) int {
		r, err := http.NewRequestWithContext(ctx, "POST", c.url+path, io.MultiReader(strings.NewReader(body)))
		if err != nil {
			c.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		for _, h := range header {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		res, err := c.http.Do(r)
		if err != nil {
			c.t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := send(""); got != 400 {
		c.t.Errorf("empty body: %d", got)
	}
	if got := send(",three"); got != 204 {
		c.t.Errorf("body: %d", got)
	}
	if got, _ := e.data(); got != ",three" {
		c.t.Errorf("event %q", got)
	}
	if got := send("", "Stream-Closed: true"); got != 204 {
		c.t.Errorf("close: %d", got)
	}
	if at := e.control(); !at.StreamClosed {
		c.t.Errorf("got %+v", at)
	}
	if got := e.next(); got != "" {
		c.t.Errorf("after the close: %q", got)
	}
}

// TestManyStreamsOfOneConnection opens as many readers as one connection may have, which
// is more than any browser asks for, and leaves them by RST_STREAM: the connection and
// those who stay are not harmed.
func TestManyStreamsOfOneConnection(t *testing.T) {
	const readers = 999 // one less than the limit: writers need the last
	metrics := prometheus.NewRegistry()
	c, _ := connect(t, api.Options{Registerer: metrics})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	c.http = &http.Client{Transport: http2(t)}
	var all []*events
	for range readers {
		e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
		e.control()
		all = append(all, e)
	}
	for i, e := range all {
		if i%3 > 0 {
			e.cancel()
		}
	}
	every(t, time.Millisecond, "those who left are gone", func() bool { return sample(t, metrics, "firn_http_live_readers") == readers/3 })
	next := c.append("/ds/trial/s", "text/plain", "to all")
	for i := 0; i < readers; i += 3 {
		if got, at := all[i].data(); got != "to all" || at.StreamNextOffset != next {
			t.Fatalf("reader %d: got %q, %+v", i, got, at)
		}
	}
}

// TestResetUploadChangesNothing breaks uploads off by RST_STREAM.
func TestResetUploadChangesNothing(t *testing.T) {
	metrics := prometheus.NewRegistry()
	c, _ := connect(t, api.Options{Registerer: metrics})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	c.http = &http.Client{Transport: http2(t)}
	c.want(200, "HEAD", "/ds/trial/s", "")
	before := sample(t, metrics, "firn_http_requests_total")
	const uploads = 20
	for i := range uploads {
		ctx, cancel := context.WithCancel(t.Context())
		in, out := io.Pipe()
		path := []string{"/ds/trial/s", fmt.Sprintf("/ds/trial/new%d", i)}[i%2]
		r, err := http.NewRequestWithContext(ctx, []string{"POST", "PUT"}[i%2], c.url+path, in)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		ended := make(chan error, 1)
		go func() {
			res, err := c.http.Do(r)
			if err == nil {
				res.Body.Close()
				err = fmt.Errorf("answered %s", res.Status)
			} else {
				err = nil
			}
			ended <- err
		}()
		if _, err := io.WriteString(out, "half"); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		out.Close()
	}
	every(t, time.Millisecond, "the uploads are over", func() bool {
		return sample(t, metrics, "firn_http_requests_total") == before+uploads
	})
	if got := c.want(200, "HEAD", "/ds/trial/s", "").next(); got != tail {
		t.Errorf("tail is %s, was %s", got, tail)
	}
	for i := 1; i < uploads; i += 2 {
		c.want(404, "HEAD", fmt.Sprintf("/ds/trial/new%d", i), "")
	}
	c.append("/ds/trial/s", "text/plain", "whole")
}
