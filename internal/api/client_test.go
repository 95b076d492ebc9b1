package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// client speaks to a server with an empty store and a bucket "trial".
type client struct {
	t    testing.TB
	http *http.Client
	url  string
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

func connect(t testing.TB, o api.Options) (*client, *api.Server) {
	t.Helper()
	o.Store = newStore(t)
	return connectTo(t, o)
}

// connectTo is connect with a store.
func connectTo(t testing.TB, o api.Options) (*client, *api.Server) {
	t.Helper()
	s := api.New(o)
	return newClient(t, listen(t, s, o).URL), s
}

// newClient makes the bucket "trial" on a server that has none.
func newClient(t testing.TB, url string) *client {
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 100}
	t.Cleanup(tr.CloseIdleConnections)
	c := &client{t: t, url: url, http: &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.want(201, "PUT", "/ds/trial", "")
	return c
}

// start sends a request and returns the response while its body is still coming.
func (c *client) start(ctx context.Context, method, path, body string, header ...string) *http.Response {
	c.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, in)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	res, err := c.http.Do(r)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

func (c *client) do(method, path, body string, header ...string) answer {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	res := c.start(ctx, method, path, body, header...)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

// want does a request whose status must be as given.
func (c *client) want(status int, method, path, body string, header ...string) answer {
	c.t.Helper()
	a := c.do(method, path, body, header...)
	if a.status != status {
		c.t.Fatalf("%s %s: got %d %s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

// create makes a stream with a first content and returns its tail.
func (c *client) create(path, contentType, body string, header ...string) (tail string) {
	c.t.Helper()
	return c.want(201, "PUT", path, body, append(header, "Content-Type: "+contentType)...).next()
}

// append appends text and returns the tail.
func (c *client) append(path, contentType, body string, header ...string) (tail string) {
	c.t.Helper()
	return c.want(204, "POST", path, body, append(header, "Content-Type: "+contentType)...).next()
}

func (a answer) next() string { return a.header.Get("Stream-Next-Offset") }

func (a answer) code() string {
	var p struct{ Code string }
	json.Unmarshal([]byte(a.body), &p)
	return p.Code
}

// events is an open event stream.
type events struct {
	t      testing.TB
	header http.Header
	lines  *bufio.Reader
	cancel func()
}

// subscribe opens an event stream and leaves it when the test ends.
func (c *client) subscribe(path string) *events {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	res := c.start(ctx, "GET", path, "")
	c.t.Cleanup(func() { cancel(); res.Body.Close() })
	if res.StatusCode != 200 {
		c.t.Fatalf("GET %s: %s", path, res.Status)
	}
	return &events{t: c.t, header: res.Header, lines: bufio.NewReader(res.Body), cancel: cancel}
}

// next returns the text of the next event or comment, without the blank line that ends
// it, or "" at the end of the stream.
func (e *events) next() string {
	e.t.Helper()
	var text strings.Builder
	for {
		line, err := e.lines.ReadString('\n')
		if err == io.EOF && line == "" && text.Len() == 0 {
			return ""
		}
		if err != nil {
			e.t.Fatalf("event stream ended within an event: %q, %v", text.String()+line, err)
		}
		if line == "\n" {
			return text.String()
		}
		text.WriteString(line)
	}
}

// control is a control event as clients see it.
type control struct {
	StreamNextOffset string
	StreamCursor     *string
	UpToDate         bool
	StreamClosed     bool
}

// control reads the next event, which must be a control event.
func (e *events) control() control {
	e.t.Helper()
	text := e.next()
	data, ok := strings.CutPrefix(text, "event: control\ndata:")
	var c control
	if !ok || json.Unmarshal([]byte(data), &c) != nil {
		e.t.Fatalf("no control event: %q", text)
	}
	return c
}

// data reads the next event, which must be a data event, and the control after it.
func (e *events) data() (string, control) {
	e.t.Helper()
	text := e.next()
	lines, ok := strings.CutPrefix(text, "event: data\ndata:")
	if !ok {
		e.t.Fatalf("no data event: %q", text)
	}
	return strings.ReplaceAll(strings.TrimSuffix(lines, "\n"), "\ndata:", "\n"), e.control()
}
