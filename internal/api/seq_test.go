package api_test

import (
	"testing"

	"firn/internal/api"
)

// Stream-Seq belongs to the stream: whoever writes, each must be greater than the one
// before, byte by byte.
func TestStreamSeqIsOfTheStream(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const text = "Content-Type: text/plain"
	c.create("/ds/trial/s", "text/plain", "")
	c.create("/ds/trial/other", "text/plain", "")
	by := func(id string) []string {
		return []string{"Producer-Id: " + id, "Producer-Epoch: 0", "Producer-Seq: 0"}
	}
	for _, step := range []struct {
		name, path, seq string
		header          []string
		status          int
		code            string
	}{
		{"first", "s", "09", []string{text}, 204, ""},
		{"the same", "s", "09", []string{text}, 409, "stream_seq_regression"},
		{"smaller", "s", "08", []string{text}, 409, "stream_seq_regression"},
		{"greater", "s", "10", []string{text}, 204, ""},
		{"greater as a number alone", "s", "1", []string{text}, 409, "stream_seq_regression"},
		{"longer, and smaller", "s", "099", []string{text}, 409, "stream_seq_regression"},
		{"of a producer", "s", "11", append(by("p"), text), 200, ""},
		{"of another producer", "s", "11", append(by("q"), text), 409, "stream_seq_regression"},
		{"of somebody else", "s", "11", []string{text, "Authorization: Bearer x"}, 409, "stream_seq_regression"},
		{"of another type", "s", "00", []string{"Content-Type: application/json"}, 409, "content_type_mismatch"},
		{"upper case", "s", "A", []string{text}, 204, ""},
		{"lower case", "s", "a", []string{text}, 204, ""},
		{"upper case again", "s", "B", []string{text}, 409, "stream_seq_regression"},
		{"of another stream", "other", "0", []string{text}, 204, ""},
	} {
		t.Run(step.name, func(t *testing.T) {
			a := c.do("POST", "/ds/trial/"+step.path, step.seq+";", append(step.header, "Stream-Seq: "+step.seq)...)
			if a.status != step.status || a.code() != step.code {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, step.status, step.code)
			}
		})
	}
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != "09;10;11;A;a;" {
		t.Errorf("the stream has %q", got)
	}
}
