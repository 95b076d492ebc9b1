package trials_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	t.Run("JS-662", messagesKeepTheirText)
	t.Run("JS-33a", badJSONIsRefused)
	t.Run("JS-2c9", flattenedOnce)
	t.Run("JS-94a", deepNesting)
	t.Run("JS-39d", prettyJSONAsEvents)
}

func messagesKeepTheirText(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	const text = `{"id":9007199254740993,"b":1,"a":2,"b":3,"n":1e400,"z":-0,"f":1.10,"h":"<&>","u":"\u2028","e":"\u00e9","r":"` + "\u2028\u00e9" + `"}`
	s.create(path, "application/json", "")
	s.append(path, "application/json", text)
	check := func(when string) {
		t.Helper()
		same(t, when, s.read(path, "-1"), "["+text+"]")
		got, _ := s.subscribe(path + "?offset=-1&live=sse").must()
		same(t, when+", SSE", got, "["+text+"]")
	}
	check("hot")
	if got := s.bootstrap(path + "/bootstrap").parts; !slices.Equal(got, []string{"", text}) {
		t.Errorf("bootstrap: %q", got)
	}
	s.seal(path)
	check("cold")
	s.restart()
	check("cold, after a restart")
}

func badJSONIsRefused(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	tail := s.create(path, "application/json", `{"ok":1}`)
	for _, body := range []string{
		`{"a":1}{"b":2}`, "{\"a\":1}\n{\"b\":2}", "[1,2,]", "NaN", "Infinity", "'x'", "{} x", "", " ", "[]", " [ ] ",
		"\"\xff\"", "[\"a\xed\xa0\x80\"]", "\ufeff{}", "\"a\x00b\"", "\"a\tb\"", `{"a":1`, "[1,2", `{"a":01}`, `{a:1}`, `"\x41"`, "+1", ".5", "1.", "[1]]",
	} {
		if a := s.do("POST", path, body, "Content-Type: application/json"); a.status != 400 {
			t.Errorf("%q: got %d", body, a.status)
		}
		if body != "" && strings.Trim(body, " []") != "" {
			s.want(400, "PUT", "/ds/trial/new", body, "Content-Type: application/json")
		}
	}
	if got := s.tail(path); got != tail {
		t.Errorf("tail is %s, was %s", got, tail)
	}
	s.holds(path, `[{"ok":1}]`)
	s.want(404, "HEAD", "/ds/trial/new", "")
}

func flattenedOnce(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "application/json", "[]")
	for _, body := range []string{`5`, `"s"`, `null`, `true`, `[null]`, `[[]]`, `[[1,2],[3]]`, `[[[1]]]`, `{}`} {
		s.append(path, "application/json", body)
	}
	want := []string{`5`, `"s"`, `null`, `true`, `null`, `[]`, `[1,2]`, `[3]`, `[[1]]`, `{}`}
	s.holds(path, "["+strings.Join(want, ",")+"]")
	b := s.bootstrap(path + "/bootstrap")
	if !slices.Equal(b.parts[1:], want) {
		t.Errorf("bootstrap: %q", b.parts)
	}
	s.create("/ds/trial/e", "application/json", "[]")
	s.holds("/ds/trial/e", "[]")
	s.create("/ds/trial/n", "application/json", "[1,[2]]")
	s.holds("/ds/trial/n", "[1,[2]]")
}

func deepNesting(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	nest := func(open, close string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	s.create(path, "application/json", nest("[", "]", 500))
	s.create("/ds/trial/other", "text/plain", "")
	tail := s.tail(path)
	for _, n := range []int{1000, 100_000, 5_000_000} {
		for name, body := range map[string]string{
			"closed":     nest("[", "]", n),
			"unclosed":   strings.Repeat("[", n),
			"objects":    nest(`{"a":`, "}", min(n, 2_500_000)),
			"half":       strings.Repeat(`{"a":`, min(n, 3_000_000)),
			"in a batch": "[1," + nest("[", "]", n) + ",2]",
		} {
			a := s.do("POST", path, body, "Content-Type: application/json")
			if a.status != 400 && a.status != 413 {
				t.Errorf("%d, %s: got %d", n, name, a.status)
			}
			s.append("/ds/trial/other", "text/plain", "x")
		}
	}
	if got := s.tail(path); got != tail {
		t.Errorf("tail is %s, was %s", got, tail)
	}
}

func prettyJSONAsEvents(t *testing.T) {
	s := serve(t)
	for name, eol := range map[string]string{"lf": "\n", "crlf": "\r\n", "cr": "\r"} {
		path := "/ds/trial/" + name
		s.create(path, "application/json", "")
		pretty := strings.ReplaceAll("{\n  \"a\": [\n    1,\n    \"x\\n\"\n  ]\n}\n", "\n", eol)
		s.append(path, "application/json", pretty)
		s.append(path, "application/json", "[\n1,\n2\n]")
		data, c := s.subscribe(path + "?offset=-1&live=sse").must()
		var got []any
		if err := json.Unmarshal([]byte(data), &got); err != nil || len(got) != 3 || !c.UpToDate {
			t.Errorf("%s: %q, %+v, %v", name, data, c, err)
		}
		if fmt.Sprint(got[0]) != "map[a:[1 x\n]]" {
			t.Errorf("%s: %v", name, got[0])
		}
	}
	tail := s.create("/ds/trial/empty", "application/json", "")
	if data, c := s.subscribe("/ds/trial/empty?offset=-1&live=sse").must(); data != "" || !c.UpToDate || c.StreamNextOffset != tail {
		t.Errorf("empty stream: %q, %+v", data, c)
	}
}
