package client_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"firn/pkg/client"
)

const mixed = "Content-Type: multipart/mixed; boundary=b\nStream-Snapshot-Offset: 3\nStream-Next-Offset: 7\n"

// parts is a bootstrap of parts, each with its header, up to the closing boundary.
func parts(list ...string) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "--b\r\n%s\r\n", p)
	}
	return b.String()
}

func part(contentType, body string) string {
	return "Content-Type: " + contentType + "\r\n\r\n" + body
}

func TestBootstrapAnswers(t *testing.T) {
	for _, c := range []struct {
		name         string
		header, body string
		want         string
		err          error
	}{
		{"whole", mixed, parts(part("a/b", "x\r\n--"), part("c/d", ""), part("c/d", "y")) + "--b--\r\n", "a/b \"x\\r\\n--\", c/d \"\", c/d \"y\", ", nil},
		{"as it is", mixed, parts("Content-Transfer-Encoding: quoted-printable\r\n"+part("a/b", "=41")) + "--b--", "a/b \"=41\", ", nil},
		{"no closing boundary", mixed, parts(part("a/b", "x"), part("c/d", "y")), "a/b \"x\", c/d \"y\\r\\n\", ", client.ErrUnreachable},
		{"cut in a part", mixed, parts(part("a/b", "x")) + "--b\r\nContent-Type: c/d\r\n\r\ny", "a/b \"x\", c/d \"y\", ", client.ErrUnreachable},
		{"cut in a boundary", mixed, parts(part("a/b", "x")) + "--b-", "a/b \"x\\r\\n--b-\", ", client.ErrUnreachable},
		{"cut behind a boundary", mixed, parts(part("a/b", "x")) + "--b\r\n", "a/b \"x\",  \"\", ", client.ErrUnreachable},
		{"cut in a header", mixed, parts(part("a/b", "x")) + "--b\r\nContent-T", "a/b \"x\", ", client.ErrUnreachable},
		{"cut behind a header", mixed, parts(part("a/b", "x")) + "--b\r\nContent-Type: c/d\r\n", "a/b \"x\", c/d \"\", ", client.ErrUnreachable},
		{"nothing", mixed, "", "", client.ErrUnreachable},
		{"no multipart", "Content-Type: text/plain\nStream-Next-Offset: 7\nStream-Snapshot-Offset: 3", "x", "", client.ErrAnswer},
		{"no boundary", "Content-Type: multipart/mixed\nStream-Next-Offset: 7\nStream-Snapshot-Offset: 3", "x", "", client.ErrAnswer},
		{"no snapshot offset", strings.Replace(mixed, "Snapshot", "X", 1), "", "", client.ErrAnswer},
		{"no next offset", strings.Replace(mixed, "Next", "X", 1), "", "", client.ErrAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, st := serve(t, client.Options{}, reply{status: 200, header: c.header, body: c.body})
			got := ""
			b, err := st.Bootstrap(t.Context())
			for err == nil {
				var p *client.Part
				if p, err = b.NextPart(); err == nil {
					var body []byte
					body, err = io.ReadAll(p)
					got += fmt.Sprintf("%s %q, ", p.ContentType, body)
				}
			}
			if err == io.EOF {
				err = nil
			}
			if b != nil {
				b.Close()
			}
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %s and %v", got, err)
			}
		})
	}
}

// Only what arrived up to the closing boundary becomes a step, and all messages of it
// one page.
func TestSyncAnswers(t *testing.T) {
	json := []string{part("a/b", "state"), part("application/json", "[1]"), part("application/json", "{}")}
	s, st := serve(t, client.Options{PageBytes: 10, Retry: client.Retry{First: time.Nanosecond}},
		reply{status: 503},
		reply{status: 200, header: mixed, body: parts(json...)},
		reply{status: 200, header: mixed, body: parts(json...) + "--b--"},
		reply{status: 410},
		reply{status: 200, header: mixed + "Stream-Up-To-Date: true\nStream-Closed: true", body: parts(json[0], part("application/json", "12345678")) + "--b--"},
	)
	var got strings.Builder
	for step, err := range st.Sync(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if step.Snapshot != nil {
			blob, err := io.ReadAll(step.Snapshot)
			fmt.Fprintf(&got, "%s at %s, %v\n", blob, step.Snapshot.Offset, err)
		} else {
			fmt.Fprintf(&got, "%q to %s, %v\n", step.Data, step.Next, step.Closed)
		}
	}
	if want := "state at 3, <nil>\nstate at 3, <nil>\n\"[1]\\n{}\\n\" to 7, false\nstate at 3, <nil>\n\"12345678\\n\" to 7, true\n"; got.String() != want {
		t.Errorf("got\n%swant\n%s", &got, want)
	}
	if want := "GET /s/bootstrap\nGET /s/bootstrap\nGET /s/bootstrap\nGET /s?offset=7\nGET /s/bootstrap"; s.said() != want {
		t.Errorf("asked\n%s", s.said())
	}

	// No snapshot can help against a stream that is gone, or an answer beyond all bounds.
	for _, replies := range [][]reply{
		{{status: 200, header: mixed, body: parts(json...) + "--b--"}, {status: 410, body: `{"code":"stream_deleted"}`}},
		{{status: 200, header: mixed, body: parts(json[0], part("application/json", "1234567890")) + "--b--"}},
		{{status: 200, header: mixed, body: "--b--"}},
		{{status: 404}},
	} {
		_, st := serve(t, client.Options{PageBytes: 10, Retry: client.Retry{First: time.Nanosecond}}, replies...)
		var failed []error
		for _, err := range st.Sync(t.Context(), "") {
			if err != nil {
				failed = append(failed, err)
			}
		}
		if len(failed) != 1 {
			t.Errorf("%+v: %v", replies, failed)
		}
	}
}
