package api_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/api"
)

// epoch is when intervals begin to be counted; at is a moment 1000 intervals later.
var at = time.Date(2024, time.October, 9, 0, 0, 0, 0, time.UTC).Add(1000 * 20 * time.Second)

func fixedClock() time.Time { return at }

// await starts a request and returns its answer when there is one.
func (c *client) await(path string) <-chan answer {
	out := make(chan answer, 1)
	go func() { out <- c.do("GET", path, "") }()
	return out
}

func TestLongPoll(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Minute, Clock: fixedClock})
	tail := c.create("/ds/trial/s", "text/plain", "one")
	poll := "/ds/trial/s?live=long-poll&offset="

	a := c.want(200, "GET", poll+"-1", "")
	if a.body != "one" || a.next() != tail || a.header.Get("Stream-Cursor") != "1000" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("data there: got %q, %v", a.body, a.header)
	}
	for name, offset := range map[string]string{"tail": tail, "now": "now"} {
		t.Run(name, func(t *testing.T) {
			// Whether the append comes before or after the wait begins makes no
			// difference at a given offset. With offset=now it does: poll until it is seen.
			waiting := c.await(poll + offset)
			var next string
			for done := false; !done; {
				next = c.append("/ds/trial/s", "text/plain", "two")
				select {
				case a = <-waiting:
					done = true
				case <-time.After(20 * time.Millisecond):
				}
			}
			if a.status != 200 || !strings.HasPrefix(a.body, "two") || a.header.Get("Stream-Up-To-Date") != "true" || a.next() > next {
				t.Errorf("got %d %q, %v", a.status, a.body, a.header)
			}
		})
	}

	tail = c.want(200, "HEAD", "/ds/trial/s", "").next()
	waiting := c.await(poll + tail)
	c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true")
	a = <-waiting
	if a.status != 204 || a.header.Get("Stream-Closed") != "true" || a.header.Get("Stream-Up-To-Date") != "true" || a.next() != tail || a.header.Get("Stream-Cursor") != "" {
		t.Errorf("close: got %d, %v", a.status, a.header)
	}
	if a := c.want(204, "GET", poll+tail, ""); a.header.Get("Stream-Closed") != "true" {
		t.Errorf("closed: got %v", a.header)
	}
	c.want(404, "GET", "/ds/trial/missing?live=long-poll&offset=now", "")
}

func TestLongPollTimeout(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Millisecond, Clock: fixedClock})
	tail := c.create("/ds/trial/s", "application/json", "[1]")
	a := c.want(204, "GET", "/ds/trial/s?live=long-poll&offset="+tail+"&cursor=1000", "")
	if a.next() != tail || a.header.Get("Stream-Up-To-Date") != "true" || a.header.Get("Content-Type") != "" {
		t.Errorf("got %v", a.header)
	}
	if n, err := strconv.Atoi(a.header.Get("Stream-Cursor")); err != nil || n <= 1000 || n > 1180 {
		t.Errorf("cursor %q follows 1000", a.header.Get("Stream-Cursor"))
	}
}

func TestEvents(t *testing.T) {
	c, _ := connect(t, api.Options{Clock: fixedClock})
	first := c.create("/ds/trial/s", "text/plain", "a\nb")
	e := c.subscribe("/ds/trial/s?live=sse&offset=-1")
	for name, want := range map[string]string{
		"Content-Type":             "text/event-stream",
		"Cache-Control":            "no-cache, no-store, no-transform",
		"X-Accel-Buffering":        "no",
		"Content-Length":           "",
		"Stream-SSE-Data-Encoding": "",
	} {
		if got := e.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got := e.next(); got != "event: data\ndata:a\ndata:b\n" {
		t.Errorf("got %q", got)
	}
	if got, want := e.next(), "event: control\n"+`data:{"streamNextOffset":"`+first+`","streamCursor":"1000","upToDate":true}`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	second := c.append("/ds/trial/s", "text/plain", "c")
	if got, at := e.data(); got != "c" || at.StreamNextOffset != second || !at.UpToDate {
		t.Errorf("append: got %q, %+v", got, at)
	}
	last := c.append("/ds/trial/s", "text/plain", "end", "Stream-Closed: true")
	if got, at := e.data(); got != "end" || at.StreamNextOffset != last || !at.StreamClosed || at.StreamCursor != nil {
		t.Errorf("append and close: got %q, %+v", got, at)
	}
	if got := e.next(); got != "" {
		t.Errorf("after the close: got %q", got)
	}
	for _, offset := range []string{last, "now"} {
		e := c.subscribe("/ds/trial/s?live=sse&offset=" + offset)
		if at := e.control(); at.StreamNextOffset != last || !at.StreamClosed || !at.UpToDate {
			t.Errorf("closed, at %s: got %+v", offset, at)
		}
		if got := e.next(); got != "" {
			t.Errorf("closed, at %s: then %q", offset, got)
		}
	}
	e = c.subscribe("/ds/trial/s?live=sse&offset=" + first)
	if got, at := e.data(); got != "cend" || !at.StreamClosed {
		t.Errorf("closed, from the middle: got %q, %+v", got, at)
	}
}

func TestEventsOfOtherTypes(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/json", "application/json", `[{"a":"\r\n"},2]`)
	if got, _ := c.subscribe("/ds/trial/json?live=sse&offset=-1").data(); got != `[{"a":"\r\n"},2]` {
		t.Errorf("JSON: got %q", got)
	}
	c.create("/ds/trial/bin", "application/ld+json", "\x00\xff\n")
	e := c.subscribe("/ds/trial/bin?live=sse&offset=-1")
	if got, _ := e.data(); got != "AP8K" || e.header.Get("Stream-SSE-Data-Encoding") != "base64" {
		t.Errorf("binary: got %q, %v", got, e.header)
	}
	tail := c.create("/ds/trial/empty", "application/json", "")
	if at := c.subscribe("/ds/trial/empty?live=sse&offset=-1").control(); at.StreamNextOffset != tail || !at.UpToDate {
		t.Errorf("empty: got %+v", at)
	}
}

func TestEventsKeepCharactersWhole(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "a\xc3")
	e := c.subscribe("/ds/trial/s?live=sse&offset=-1")
	got, at := e.data()
	if got != "a" || !at.UpToDate || at.StreamNextOffset >= tail {
		t.Fatalf("got %q, %+v with the tail at %s", got, at, tail)
	}
	// Coming back with that offset loses nothing.
	back := c.subscribe("/ds/trial/s?live=sse&offset=" + at.StreamNextOffset)
	if again := back.control(); again.StreamNextOffset != at.StreamNextOffset || !again.UpToDate {
		t.Errorf("back: got %+v", again)
	}
	tail = c.append("/ds/trial/s", "text/plain", "\xa9b\xf0\x9f")
	for name, e := range map[string]*events{"first": e, "back": back} {
		if got, at := e.data(); got != "\u00e9b" || at.StreamNextOffset >= tail {
			t.Errorf("%s: got %q, %+v", name, got, at)
		}
	}
	// A part that completes nothing is not worth an event.
	c.append("/ds/trial/s", "text/plain", "\x98")
	tail = c.append("/ds/trial/s", "text/plain", "\x80\xe2\x82")
	if got, at := e.data(); got != "\U0001f600" || at.StreamNextOffset >= tail {
		t.Errorf("four bytes: got %q, %+v", got, at)
	}
	tail = c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true").next()
	if got, at := e.data(); got != "\xe2\x82" || at.StreamNextOffset != tail || !at.StreamClosed {
		t.Errorf("close: got %q, %+v", got, at)
	}
}

// A reader that comes back between CR and LF would see two line ends.
func TestEventsKeepLineEndsWhole(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "a\r")
	e := c.subscribe("/ds/trial/s?live=sse&offset=-1")
	got, at := e.data()
	if got != "a" || !at.UpToDate || at.StreamNextOffset >= tail {
		t.Fatalf("got %q, %+v with the tail at %s", got, at, tail)
	}
	back := c.subscribe("/ds/trial/s?live=sse&offset=" + at.StreamNextOffset)
	back.control()
	c.append("/ds/trial/s", "text/plain", "\nb\r")
	for name, e := range map[string]*events{"first": e, "back": back} {
		if got, _ := e.data(); got != "\nb" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	tail = c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true").next()
	if got, at := e.data(); got != "\n" || at.StreamNextOffset != tail || !at.StreamClosed {
		t.Errorf("close: got %q, %+v", got, at)
	}
}

func TestEventStreamGrowsOld(t *testing.T) {
	c, _ := connect(t, api.Options{SSEHeartbeat: 5 * time.Millisecond, SSEMaxAge: 100 * time.Millisecond})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	e := c.subscribe("/ds/trial/s?live=sse&offset=now")
	beats := 0
	if at := e.control(); at.StreamNextOffset != tail || !at.UpToDate {
		t.Errorf("first: got %+v", at)
	}
	for {
		text := e.next()
		if text == ":\n" {
			beats++
			continue
		}
		if !strings.Contains(text, tail) || !strings.Contains(text, "streamCursor") || !strings.HasPrefix(text, "event: control\n") {
			t.Errorf("last: got %q", text)
		}
		break
	}
	if beats == 0 {
		t.Error("no heartbeat")
	}
	if got := e.next(); got != "" {
		t.Errorf("after the end: %q", got)
	}
}

func TestDeletionEndsLiveReaders(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Minute})
	tail := c.create("/ds/trial/s", "text/plain", "old")
	e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
	e.control()
	waiting := c.await("/ds/trial/s?live=long-poll&offset=" + tail)
	c.want(204, "DELETE", "/ds/trial/s", "")
	if a := <-waiting; a.status != http.StatusNotFound {
		t.Errorf("long-poll: got %d %q", a.status, a.body)
	}
	c.create("/ds/trial/s", "text/plain", "new")
	if got := e.next(); got != "" {
		t.Errorf("events: got %q", got)
	}
}

func TestDrain(t *testing.T) {
	c, s := connect(t, api.Options{LongPollTimeout: time.Minute})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
	e.control()
	s.Drain()
	if at := e.control(); at.StreamNextOffset != tail {
		t.Errorf("last control event: %+v", at)
	}
	if got := e.next(); got != "" {
		t.Errorf("after it: %q", got)
	}
	for _, live := range []string{"sse", "long-poll"} {
		a := c.want(503, "GET", "/ds/trial/s?offset=now&live="+live, "")
		if a.code() != "stopping" || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: got %s, %v", live, a.body, a.header)
		}
	}
	c.append("/ds/trial/s", "text/plain", "y")
	c.want(200, "GET", "/ds/trial/s", "")
}

func TestDrainAnswersLongPolls(t *testing.T) {
	c, s := connect(t, api.Options{LongPollTimeout: time.Minute})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	w := &countingWriter{header: http.Header{}}
	ctx := &watchedContext{Context: t.Context(), watched: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		s.Handler().ServeHTTP(w, request("GET", "/ds/trial/s?offset=now&live=long-poll").WithContext(ctx))
		close(done)
	}()
	<-ctx.watched // it was admitted
	s.Drain()
	<-done
	if w.status != 204 || w.header.Get("Stream-Next-Offset") != tail || w.header.Get("Stream-Up-To-Date") != "true" {
		t.Errorf("got %d, %v", w.status, w.header)
	}
}

// watchedContext tells when somebody began to wait for its end.
type watchedContext struct {
	context.Context
	once    sync.Once
	watched chan struct{}
}

func (w *watchedContext) Done() <-chan struct{} {
	w.once.Do(func() { close(w.watched) })
	return w.Context.Done()
}

func request(method, path string) *http.Request {
	r, err := http.NewRequest(method, path, http.NoBody)
	if err != nil {
		panic(err)
	}
	return r
}

// countingWriter counts what reaches the connection.
type countingWriter struct {
	mu      sync.Mutex
	header  http.Header
	status  int
	writes  []string
	flushes int
	first   chan struct{} // closed at the first flush
}

func (w *countingWriter) Header() http.Header { return w.header }

func (w *countingWriter) WriteHeader(status int) { w.status = status }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, string(p))
	return len(p), nil
}

func (w *countingWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.flushes++; w.flushes == 1 && w.first != nil {
		close(w.first)
	}
}

func TestDataAndControlLeaveTogether(t *testing.T) {
	c, s := connect(t, api.Options{})
	c.create("/ds/trial/s", "text/plain", strings.Repeat("x", 5000))
	w := &countingWriter{header: http.Header{}, first: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		s.Handler().ServeHTTP(w, request("GET", "/ds/trial/s?offset=-1&live=sse"))
		close(done)
	}()
	<-w.first
	c.append("/ds/trial/s", "text/plain", "end", "Stream-Closed: true")
	<-done
	if len(w.writes) != 2 || w.flushes != 2 {
		t.Fatalf("%d writes, %d flushes", len(w.writes), w.flushes)
	}
	for _, text := range w.writes {
		if !strings.HasPrefix(text, "event: data\n") || !strings.Contains(text, "\n\nevent: control\ndata:{") || !strings.HasSuffix(text, "}\n\n") {
			t.Errorf("one write is %q", text)
		}
	}
}

func TestManyReadersOnOneConnection(t *testing.T) {
	const readers = 300
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "x")
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{
		Protocols:          &p,
		DisableCompression: true,
		HTTP2:              &http.HTTP2Config{StrictMaxConcurrentRequests: true}, // no second connection
	}
	t.Cleanup(tr.CloseIdleConnections)
	c.http = &http.Client{Transport: tr}

	var all []*events
	for range readers {
		e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
		e.control()
		all = append(all, e)
	}
	next := c.append("/ds/trial/s", "text/plain", "to all")
	for i, e := range all {
		if got, at := e.data(); got != "to all" || at.StreamNextOffset != next {
			t.Fatalf("reader %d: got %q, %+v", i, got, at)
		}
	}
}
