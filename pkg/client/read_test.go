package client_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"firn/pkg/client"
)

const asJSON = "application/json; charset=utf-8"

func TestPages(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply reply
		want  string
		err   error
	}{
		{"lines", page(asJSON, "8", ` [1, [2] ,"a\u000a"]`, ""), "1\n[2]\n\"a\\u000a\"\n", nil},
		{"bytes", page("text/plain", "6", "[1]", ""), "[1]", nil},
		{"no messages", page(asJSON, "3", "[]", "Stream-Up-To-Date: true"), "", nil},
		{"as many bytes as may be", page("text/plain", "3", "0123456789", ""), "0123456789", nil},
		{"one more", page("text/plain", "3", "0123456789x", ""), "", client.ErrAnswer},
		{"no offset", reply{status: 200, header: "Content-Type: text/plain", body: "x"}, "", client.ErrAnswer},
		{"no JSON", page(asJSON, "5", "[1", ""), "", client.ErrAnswer},
		{"no progress", page("text/plain", "0", "", ""), "", client.ErrAnswer},
		{"cut", page("text/plain", "9", "abc", "Content-Length: 9"), "", client.ErrUnreachable},
		{"broken off", reply{200, "Content-Type: text/plain\nStream-Next-Offset: 9", "abc", abort}, "", client.ErrUnreachable},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := 0
			if c.reply.header == page("text/plain", "3", "", "").header {
				limit = 10
			}
			_, st := serve(t, client.Options{PageBytes: limit}, c.reply)
			p, err := st.Get(t.Context(), "0")
			if !errors.Is(err, c.err) || string(p.Data) != c.want {
				t.Errorf("got %q, %v", p.Data, err)
			}
		})
	}
}

// A reader is told once when it has caught up, goes on where the last page ended, and
// echoes the cursor. Waiting that brings nothing is not told.
func TestFollowByLongPoll(t *testing.T) {
	const upToDate = "Stream-Up-To-Date: true\nStream-Cursor: "
	s, st := serve(t, client.Options{Live: client.LongPoll, Retry: client.Retry{First: time.Nanosecond}},
		page("text/plain", "3", "abc", "Stream-Cursor: 1"),
		page("text/plain", "3", "", upToDate+"2"),
		reply{status: 204, header: "Stream-Next-Offset: 3\n" + upToDate + "3"},
		reply{status: 503},
		page("text/plain", "5", "de", "Stream-Cursor: 4"),
		reply{status: 200, header: "Content-Type: text/plain\nStream-Next-Offset: 9", body: "f", then: abort},
		page("text/plain", "6", "f", upToDate+"5"),
		reply{status: 204, header: "Stream-Next-Offset: 6\nStream-Closed: true"},
	)
	got := pages(t, st.Follow(t.Context(), ""))
	want := `"abc" 3
"" 3 up to date
"de" 5
"f" 6 up to date
"" 6 up to date closed
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	asked := `GET /s?offset=-1
GET /s?offset=3
GET /s?cursor=2&live=long-poll&offset=3
GET /s?cursor=3&live=long-poll&offset=3
GET /s?cursor=3&live=long-poll&offset=3
GET /s?cursor=4&live=long-poll&offset=5
GET /s?cursor=4&live=long-poll&offset=5
GET /s?cursor=5&live=long-poll&offset=6`
	if s.said() != asked {
		t.Errorf("asked\n%s\nwant\n%s", s.said(), asked)
	}
}

func TestReadEndsAtTail(t *testing.T) {
	s, st := serve(t, client.Options{}, page("text/plain", "3", "abc", ""), page("text/plain", "5", "de", "Stream-Up-To-Date: true"), reply{status: 500})
	if got := pages(t, st.Read(t.Context(), "")); got != "\"abc\" 3\n\"de\" 5 up to date\n" {
		t.Errorf("got\n%s", got)
	}
	if got := pages(t, st.Read(t.Context(), "5")); got != "error\n" {
		t.Errorf("got\n%s of %s", got, s.said())
	}
}

func TestMessages(t *testing.T) {
	_, st := serve(t, client.Options{}, page(asJSON, "3", `[1,2]`, ""), page(asJSON, "5", `[3]`, "Stream-Up-To-Date: true"))
	n := 0
	for m, err := range client.Messages[int](st.Read(t.Context(), "")) {
		if n++; err != nil || m != n {
			t.Errorf("got %d, %v", m, err)
		}
	}
	if n != 3 {
		t.Errorf("%d messages", n)
	}
	for _, c := range []struct {
		reply reply
		is    func(error) bool
	}{
		{page("text/plain", "3", `1`, ""), func(err error) bool { return errors.Is(err, client.ErrNotJSON) }},
		{page(asJSON, "3", `["a"]`, ""), func(err error) bool { _, ok := errors.AsType[*json.UnmarshalTypeError](err); return ok }},
		{reply{status: 404}, func(err error) bool { _, ok := errors.AsType[*client.Error](err); return ok }},
	} {
		_, st := serve(t, client.Options{}, c.reply)
		n := 0
		for _, err := range client.Messages[int](st.Read(t.Context(), "")) {
			if n++; !c.is(err) {
				t.Error(err)
			}
		}
		if n != 1 {
			t.Errorf("%d errors", n)
		}
	}
}
