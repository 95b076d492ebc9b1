package stream_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"firn/pkg/stream"
)

func TestModeOf(t *testing.T) {
	for s, want := range map[string]stream.Mode{
		"application/json": stream.JSON, "Application/JSON": stream.JSON,
		"application/json;charset=utf-8": stream.JSON, " application/json ; x=y": stream.JSON,
		"": stream.Bytes, "application/jsonl": stream.Bytes, "application/x-ndjson": stream.Bytes,
		"application/ld+json": stream.Bytes, "text/json": stream.Bytes, "text/plain": stream.Bytes,
	} {
		if got := stream.ModeOf(s); got != want {
			t.Errorf("ModeOf(%q) = %s", s, got)
		}
	}
	for _, m := range []stream.Mode{stream.Bytes, stream.JSON} {
		if got, err := stream.ParseMode(m.String()); got != m || err != nil {
			t.Errorf("ParseMode(%s) = %s, %v", m, got, err)
		}
	}
	for _, s := range []string{"", "JSON", "mode(3)"} {
		if m, err := stream.ParseMode(s); err == nil {
			t.Errorf("ParseMode(%q) = %s", s, m)
		}
	}
}

func TestCheckContentType(t *testing.T) {
	long := "text/" + strings.Repeat("x", stream.MaxContentType-len("text/"))
	for s, ok := range map[string]bool{
		"text/plain": true, "application/json; charset=utf-8": true, "a/b": true, "application/vnd.x+json": true, long: true,
		"": false, "text": false, "text/": false, "/plain": false, "text/plain;;=": false, long + "x": false,
		"text/plain\r\nX: y": false, "text/pläin": false, "text/plain\x7f": false, "text plain": false,
	} {
		if err := stream.CheckContentType(s); (err == nil) != ok || err != nil && !errors.Is(err, stream.ErrContentTypeMalformed) {
			t.Errorf("CheckContentType(%.40q) = %v", s, err)
		}
	}
}

func TestIsText(t *testing.T) {
	for s, want := range map[string]bool{
		"text/plain": true, "TEXT/html; charset=x": true, "application/json": true,
		"application/octet-stream": false, "application/ndjson": false, "text": false, "": false,
	} {
		if got := stream.IsText(s); got != want {
			t.Errorf("IsText(%q) = %t", s, got)
		}
	}
}

func TestLifetimeEqual(t *testing.T) {
	at := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	elsewhere := at.In(time.FixedZone("there", 3600))
	for _, c := range []struct {
		a, b stream.Lifetime
		want bool
	}{
		{stream.Lifetime{}, stream.Lifetime{}, true},
		{stream.Lifetime{At: at}, stream.Lifetime{At: elsewhere}, true},
		{stream.Lifetime{At: at}, stream.Lifetime{At: at.Add(1)}, false},
		{stream.Lifetime{At: at}, stream.Lifetime{}, false},
		{stream.Lifetime{Sliding: true}, stream.Lifetime{}, false},
		{stream.Lifetime{Sliding: true, TTL: 1}, stream.Lifetime{Sliding: true, TTL: 2}, false},
	} {
		if got := c.a.Equal(c.b); got != c.want {
			t.Errorf("%+v equals %+v: %t", c.a, c.b, got)
		}
	}
}
