package faultproxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"firn/internal/faultproxy"
)

const content = "0123456789"

// store counts what it is asked and answers with ten bytes.
func store(t *testing.T) (*faultproxy.Proxy, *int) {
	n := new(int)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*n++
		w.Header().Set("Content-Length", "10")
		w.Header().Set("X-Host", r.Host)
		w.Header().Set("X-If", r.Header.Get("If-None-Match"))
		io.WriteString(w, content)
	}))
	t.Cleanup(srv.Close)
	return faultproxy.Start(t, faultproxy.Options{Upstream: srv.URL}), n
}

// ask returns status, body, and what went wrong.
func ask(t *testing.T, p *faultproxy.Proxy, method, path string) (int, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.URL+path, strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("If-None-Match", "*")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if h := res.Header.Get("X-Host"); h != "" && h != strings.TrimPrefix(p.URL, "http://") {
		t.Errorf("the store was asked as %s", h)
	}
	return res.StatusCode, string(b) + res.Header.Get("X-If"), err
}

func TestActions(t *testing.T) {
	for name, c := range map[string]struct {
		do     faultproxy.Action
		status int
		body   string
		broken bool
		asked  int
	}{
		"none":        {nil, 200, content + "*", false, 1},
		"fail":        {faultproxy.Fail(503, "SlowDown"), 503, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>scripted</Message></Error>`, false, 0},
		"slow":        {faultproxy.Slow(time.Millisecond), 200, content + "*", false, 1},
		"slow answer": {faultproxy.SlowAnswer(time.Millisecond), 200, content + "*", false, 1},
		"hang":        {faultproxy.Hang(), 0, "", true, 0},
		"drop":        {faultproxy.Drop(), 0, "", true, 0},
		"lose reply":  {faultproxy.LoseReply(), 0, "", true, 1},
		"hang body":   {faultproxy.HangBody(3), 200, "012*", true, 1},
		"drip":        {faultproxy.Drip(time.Minute), 200, "0*", true, 1},
		"cut":         {faultproxy.Cut(3), 200, "012*", true, 1},
		"short":       {faultproxy.Short(3), 200, "012*", false, 1},
		"flip":        {faultproxy.Flip(), 200, "0123446789*", false, 1},
		"answer":      {faultproxy.Answer(206, "X-If", "other"), 206, content + "other", false, 1},
		"ignore":      {faultproxy.Ignore("If-None-Match"), 200, content, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, asked := store(t)
			if c.do != nil {
				p.Rule(faultproxy.Rule{Method: "PUT", Path: "/b/", Do: c.do})
			}
			status, body, err := ask(t, p, "PUT", "/b/k")
			if status != c.status || body != c.body || (err != nil) != c.broken || *asked != c.asked {
				t.Errorf("got %d %q, %v; the store was asked %d times", status, body, err, *asked)
			}
			if status, body, err := ask(t, p, "PUT", "/b/k"); status != 200 || body != content+"*" || err != nil {
				t.Errorf("once more: got %d %q, %v", status, body, err)
			}
		})
	}
}

func TestRules(t *testing.T) {
	p, _ := store(t)
	p.Rule(
		faultproxy.Rule{Method: "PUT", Path: "k", Skip: 1, Times: 2, Do: faultproxy.Fail(500, "A")},
		faultproxy.Rule{Path: "?list", Times: faultproxy.Always, Every: 2, Do: faultproxy.Fail(501, "B")},
	)
	var got []int
	for _, c := range []string{"PUT /k", "GET /k", "PUT /k", "PUT /k", "PUT /k", "GET /?list", "GET /?list", "GET /?list"} {
		method, path, _ := strings.Cut(c, " ")
		status, _, _ := ask(t, p, method, path)
		got = append(got, status)
	}
	if want := "[200 200 500 500 200 501 200 501]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if n := p.Fired(); n != 4 {
		t.Errorf("%d fired, want 4", n)
	}
	if n := len(p.Calls("PUT", "k")); n != 4 {
		t.Errorf("%d calls, want 4", n)
	}
	p.Clear()
	p.Forget()
	if status, _, _ := ask(t, p, "GET", "/?list"); status != 200 || p.Fired() != 0 || len(p.Calls("", "")) != 1 {
		t.Errorf("after all was cleared: %d, %d fired, %d calls", status, p.Fired(), len(p.Calls("", "")))
	}
}
