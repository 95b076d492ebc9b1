package trials_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// client speaks to a server.
type client struct {
	t      testing.TB
	url    string
	sender *http.Client
}

func newClient(t testing.TB) client {
	tr := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 200}
	t.Cleanup(tr.CloseIdleConnections)
	return client{t: t, sender: &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a response that has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) next() string { return a.header.Get("Stream-Next-Offset") }

func (a answer) upToDate() bool { return a.header.Get("Stream-Up-To-Date") == "true" }

// patience bounds every request: what takes longer hangs.
const patience = 30 * time.Second

// begin sends a request and returns the response while its body is still coming.
func (c *client) begin(ctx context.Context, method, path, body string, header ...string) (*http.Response, error) {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, in)
	if err != nil {
		return nil, err
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	return c.sender.Do(r)
}

// try does a request; it is for any goroutine.
func (c *client) try(method, path, body string, header ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := c.begin(ctx, method, path, body, header...)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: read %s: %w", method, path, res.Status, err)
	}
	return answer{res.StatusCode, res.Header, string(b)}, nil
}

func (c *client) do(method, path, body string, header ...string) answer {
	c.t.Helper()
	a, err := c.try(method, path, body, header...)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// want does a request whose status must be as given.
func (c *client) want(status int, method, path, body string, header ...string) answer {
	c.t.Helper()
	a := c.do(method, path, body, header...)
	if a.status != status {
		c.t.Fatalf("%s %s: got %d %.300s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

// create makes a stream with a first content and returns its tail.
func (c *client) create(path, contentType, body string, header ...string) (tail string) {
	c.t.Helper()
	return c.want(201, "PUT", path, body, append(header, "Content-Type: "+contentType)...).next()
}

// append appends and returns the tail.
func (c *client) append(path, contentType, body string, header ...string) (tail string) {
	c.t.Helper()
	return c.want(204, "POST", path, body, append(header, "Content-Type: "+contentType)...).next()
}

func (c *client) tail(path string) string {
	c.t.Helper()
	return c.want(200, "HEAD", path, "").next()
}

// read follows a stream from an offset to its tail and returns all bytes. Of a JSON
// stream they are the arrays one after the other.
func (c *client) read(path, offset string) string {
	c.t.Helper()
	got, _, err := c.chain(path, offset)
	if err != nil {
		c.t.Fatal(err)
	}
	return got
}

// chain is read for any goroutine. It also returns where the tail was.
func (c *client) chain(path, offset string) (string, string, error) {
	var all strings.Builder
	for {
		a, err := c.try("GET", path+"?offset="+offset, "")
		if err != nil {
			return "", "", err
		}
		if a.status != 200 {
			return "", "", fmt.Errorf("read %s at %s: %d %s", path, offset, a.status, a.body)
		}
		if a.body == "" && !a.upToDate() {
			return "", "", fmt.Errorf("read %s at %s: empty before the tail", path, offset)
		}
		all.WriteString(a.body)
		offset = a.next()
		if a.upToDate() {
			return all.String(), offset, nil
		}
	}
}

// holds fails unless a full read of a stream gives want.
func (c *client) holds(path, want string) {
	c.t.Helper()
	same(c.t, path, c.read(path, "-1"), want)
}

// same compares two contents and says where they differ.
func same(t testing.TB, what, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	t.Errorf("%s: %d bytes, want %d; from %d on %.80q, want %.80q", what, len(got), len(want), i, got[i:], want[i:])
}

// messages takes a JSON array apart.
func messages(t testing.TB, array string) []string {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(array), &raw); err != nil {
		t.Fatalf("%v: %.200q", err, array)
	}
	out := make([]string, len(raw))
	for i, m := range raw {
		out[i] = string(m)
	}
	return out
}

// position returns the position that an offset names, -1 if it is none.
func position(offset string) int {
	_, digits, _ := strings.Cut(offset, "_")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

// at returns the offset of a position in the same life.
func at(offset string, position int) string { return fmt.Sprintf("%s_%016d", offset[:16], position) }

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		if holds() {
			tick.Stop()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}
