package api_test

import (
	"testing"
	"time"

	"firn/internal/api"
)

// A long-poll that is repeated with the tag of its answer is told that it has the data
// already, until there is more, or an end.
func TestConditionalLongPoll(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Millisecond})
	const poll = "/ds/trial/s?live=long-poll&offset=-1"
	tail := c.create("/ds/trial/s", "text/plain", "one")
	tag := c.want(200, "GET", poll, "").header.Get("ETag")
	if catchUp := c.want(200, "GET", "/ds/trial/s", "").header.Get("ETag"); tag == "" || tag != catchUp {
		t.Errorf("the tag is %s, of a plain read %s", tag, catchUp)
	}
	same := c.want(304, "GET", poll, "", "If-None-Match: "+tag)
	if same.body != "" || same.next() != tail || same.header.Get("ETag") != tag || same.header.Get("Stream-Cursor") == "" {
		t.Errorf("304: %q, %v", same.body, same.header)
	}
	// Where there is no data there is nothing to have.
	if a := c.want(204, "GET", "/ds/trial/s?live=long-poll&offset="+tail, "", "If-None-Match: *"); a.header.Get("ETag") != "" {
		t.Errorf("204: %v", a.header)
	}
	c.append("/ds/trial/s", "text/plain", "two")
	more := c.want(200, "GET", poll, "", "If-None-Match: "+tag)
	if more.body != "onetwo" {
		t.Errorf("after an append: %q", more.body)
	}
	c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true")
	if a := c.want(200, "GET", poll, "", "If-None-Match: "+more.header.Get("ETag")); a.header.Get("Stream-Closed") != "true" {
		t.Errorf("after the close: %v", a.header)
	}
}
