package client_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"firn/pkg/client"
)

func events(body, more string) reply {
	return reply{status: 200, header: "Content-Type: text/event-stream; charset=utf-8\n" + more, body: body}
}

func control(next, more string) string {
	return fmt.Sprintf("event: control\ndata: {\"streamNextOffset\":%q,\"streamCursor\":\"c%s\"%s}\n\n", next, next, more)
}

const (
	closed   = `,"streamClosed":true`
	tail     = "Stream-Up-To-Date: true"
	asBase64 = "Stream-SSE-Data-Encoding: base64"
)

// What other servers may do with events is understood.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, contentType, header, body string
		want                            string
	}{
		{"JSON over lines", asJSON, "", "event: data\ndata: [\ndata: {\"k\":\"v\"},\ndata: 2\ndata: ]\n\n" + control("5", closed), "\"{\\\"k\\\":\\\"v\\\"}\\n2\\n\" 5 up to date closed\n"},
		{"base64 over lines", "a/b", asBase64, "event: data\ndata: AQIDBAUG\ndata: BwgJCg==\n\n" + control("5", closed), "\"\\x01\\x02\\x03\\x04\\x05\\x06\\a\\b\\t\\n\" 5 up to date closed\n"},
		{"no bytes", "a/b", asBase64, "event: data\ndata:\n\n" + control("5", closed), "\"\" 5 up to date closed\n"},
		{"CRLF and comments", "text/x", "", ": hello\r\nretry: 5\r\nid\r\nevent:data\r\ndata: a\r\ndata:  b\r\n: more\r\ndata\r\n\r\nevent: other\r\ndata: x\r\n\r\n" + strings.ReplaceAll(control("5", closed), "\n", "\r\n"), "\"a\\n b\\n\" 5 up to date closed\n"},
		{"CR alone", "text/x", "", "event:data\rdata:a\r\revent:control\rdata:{\"streamNextOffset\":\"5\",\"streamClosed\":true}\r\r\n", "\"a\" 5 up to date closed\n"},
		{"two data events", "text/x", "", "event: data\ndata: a\n\nevent: data\ndata: b\n\n" + control("5", closed), "\"ab\" 5 up to date closed\n"},
		{"a name without data", "text/x", "", "event: data\n\ndata: a\n\nevent: data\ndata: b\n\n" + control("5", closed), "\"b\" 5 up to date closed\n"},
		{"longer than a buffer", "text/x", "", "event: data\ndata: " + strings.Repeat("x", 40000) + "\n\n" + control("5", closed), fmt.Sprintf("%q 5 up to date closed\n", strings.Repeat("x", 40000))},
		{"bad base64", "a/b", asBase64, "event: data\ndata: AQI\n\n", "error\n"},
		{"bad JSON", asJSON, "", "event: data\ndata: [1\n\n", "error\n"},
		{"bad control", "text/x", "", "event: control\ndata: {}\n\n", "error\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, st := serve(t, client.Options{Live: client.SSE}, page(c.contentType, "3", "", tail), events(c.body, c.header))
			if got := pages(t, st.Follow(t.Context(), "3")); got != "\"\" 3 up to date\n"+c.want {
				t.Errorf("got\n%s", got)
			}
			if want := "GET /s?offset=3\nGET /s?live=sse&offset=3"; s.said() != want {
				t.Errorf("asked\n%s", s.said())
			}
		})
	}
}

// What is not followed by a control event does not count: it comes again.
func TestEventsResume(t *testing.T) {
	data := func(text string) string { return "event: data\ndata: " + text + "\n\n" }
	s, st := serve(t, client.Options{Live: client.SSE, Retry: client.Retry{First: time.Nanosecond}},
		page("text/x", "3", "", tail),
		events(data("a")+control("4", "")+data("b"), ""),
		events(data("b")+"event: control\ndata: {\"streamNext", ""),
		reply{200, "Content-Type: text/event-stream", data("b") + control("5", `,"upToDate":true`), abort},
		reply{status: 502},
		events("", ""),
		events(control("5", `,"upToDate":true`), ""),
		events(data("c")+control("6", closed)+data("d")+control("7", ""), ""),
	)
	if got, want := pages(t, st.Follow(t.Context(), "3")), `"" 3 up to date
"a" 4
"b" 5 up to date
"c" 6 up to date closed
`; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if want := `GET /s?offset=3
GET /s?live=sse&offset=3
GET /s?cursor=c4&live=sse&offset=4
GET /s?cursor=c4&live=sse&offset=4
GET /s?cursor=c5&live=sse&offset=5
GET /s?cursor=c5&live=sse&offset=5
GET /s?cursor=c5&live=sse&offset=5
GET /s?cursor=c5&live=sse&offset=5`; s.said() != want {
		t.Errorf("asked\n%s", s.said())
	}
}

// Where events do not get through, Auto asks by long-poll; who asked for SSE is told.
func TestEventsUnfit(t *testing.T) {
	for name, unfit := range map[string]reply{
		"refused":      {status: 400, body: `{"code":"live_invalid"}`},
		"not there":    {status: 501},
		"another type": page("text/html", "3", "<html>", ""),
		"held back":    {status: 200, header: "Content-Type: text/event-stream", then: hang},
	} {
		t.Run(name, func(t *testing.T) {
			replies := []reply{page(asJSON, "3", "[]", tail), unfit, page(asJSON, "5", "[1]", tail+"\nStream-Closed: true")}
			silence := 10 * time.Second
			if unfit.then != nil {
				silence = 20 * time.Millisecond
			}
			s, st := serve(t, client.Options{Silence: silence, Retry: client.Retry{First: time.Nanosecond}}, replies...)
			if got, want := pages(t, st.Follow(t.Context(), "3")), "\"\" 3 up to date\n\"1\\n\" 5 up to date closed\n"; got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if !strings.HasSuffix(s.said(), "GET /s?live=long-poll&offset=3") {
				t.Errorf("asked\n%s", s.said())
			}
			_, st = serve(t, client.Options{Silence: silence, Live: client.SSE}, replies...)
			if got := pages(t, st.Follow(t.Context(), "3")); got != "\"\" 3 up to date\nerror\n" {
				t.Errorf("SSE alone: got\n%s", got)
			}
		})
	}
}

// Events are bounded by what the client is ready to hold, to the byte.
func TestEventLimit(t *testing.T) {
	for _, c := range []struct {
		contentType, header, data string
		ok                        bool
	}{
		{"text/x", "", strings.Repeat("x", 3000), true},
		{"text/x", "", strings.Repeat("x", 3001), false},
		{"text/x", "", strings.Repeat("x", 1500) + "\n\nevent: data\ndata: " + strings.Repeat("x", 1501), false},
		{"text/x", "", strings.Repeat("x\ndata: ", 4100), false},
		{"a/b", asBase64, strings.Repeat("AAAA", 1000), true},
		{"a/b", asBase64, strings.Repeat("AAAA", 1000) + "AA==", false},
		{"a/b", asBase64, strings.Repeat("AAAA", 100000), false},
	} {
		_, st := serve(t, client.Options{Live: client.SSE, PageBytes: 3000}, page(c.contentType, "3", "", tail),
			events("event: data\ndata: "+c.data+"\n\n"+control("5", closed), c.header))
		var last error
		for _, err := range st.Follow(t.Context(), "3") {
			last = err
		}
		if (last == nil) != c.ok || last != nil && !errors.Is(last, client.ErrAnswer) {
			t.Errorf("%d bytes of %s: %v", len(c.data), c.contentType, last)
		}
	}
}
