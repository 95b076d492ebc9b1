package trials_test

import (
	"errors"
	"fmt"
	"mime"
	"strings"
	"testing"
)

// boot is a bootstrap answer taken apart.
type boot struct {
	answer
	boundary string
	types    []string
	parts    []string // the first one is the snapshot
}

func (c *client) bootstrap(path string) boot {
	c.t.Helper()
	a := c.want(200, "GET", path, "")
	b, err := takeApart(a)
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	return b
}

func takeApart(a answer) (boot, error) {
	b := boot{answer: a}
	kind, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || kind != "multipart/mixed" {
		return b, fmt.Errorf("content type %q, %v", a.header.Get("Content-Type"), err)
	}
	b.boundary = params["boundary"]
	b.types, b.parts, err = splitParts(a.body, b.boundary)
	return b, err
}

// splitParts reads RFC 2046 to the letter: no preamble, CRLF line ends, one header
// line a part, an empty line before the body, the line end before a delimiter belongs to
// the delimiter, nothing after the last one.
func splitParts(body, boundary string) (types, parts []string, err error) {
	if boundary == "" || len(boundary) > 70 {
		return nil, nil, fmt.Errorf("boundary %q", boundary)
	}
	rest, ok := strings.CutPrefix(body, "--"+boundary)
	if !ok {
		return nil, nil, errors.New("does not begin with the delimiter")
	}
	for {
		if rest == "--\r\n" {
			return types, parts, nil
		}
		head, after, ok := strings.Cut(rest, "\r\n\r\n")
		kind, isType := strings.CutPrefix(head, "\r\nContent-Type: ")
		if !ok || !isType || strings.ContainsAny(kind, "\r\n") {
			return nil, nil, fmt.Errorf("part %d has the header %.100q", len(parts), head)
		}
		content, next, ok := strings.Cut(after, "\r\n--"+boundary)
		if !ok || strings.HasPrefix(after, "--"+boundary) {
			return nil, nil, fmt.Errorf("part %d does not end: %.100q", len(parts), after)
		}
		types, parts, rest = append(types, kind), append(parts, content), next
	}
}

func TestSplitPartsIsStrict(t *testing.T) {
	const good = "--B\r\nContent-Type: a\r\n\r\n\r\n--B\r\nContent-Type: b\r\n\r\nx\r\n\r\n--B--\r\n"
	if types, parts, err := splitParts(good, "B"); err != nil || strings.Join(types, ",") != "a,b" || strings.Join(parts, ",") != ",x\r\n" {
		t.Errorf("got %q, %q, %v", types, parts, err)
	}
	for _, bad := range []string{
		"\r\n" + good, "x" + good, good + "\r\n", good[:len(good)-2], good[:len(good)-4],
		strings.Replace(good, "\r\n\r\n\r\n--B", "\r\n\r\n--B", 1),
		strings.Replace(good, "Content-Type: b", "Content-Type: b\r\nX: y", 1),
		strings.ReplaceAll(good, "\r\n", "\n"),
	} {
		if _, _, err := splitParts(bad, "B"); err == nil {
			t.Errorf("took %q", bad)
		}
	}
}
