package api_test

import (
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// TestWhatEndsALiveReader: a reader at the tail is woken by all that can happen to its
// stream, and told of it by an answer, or by what it gets when it comes back.
func TestWhatEndsALiveReader(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(c *client, tail string)
		poll   int    // the status of a long-poll
		body   string // its body, and the data of an event
		closed bool
		back   int // the status of who comes back
	}{
		{"close", func(c *client, _ string) { c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true") }, 204, "", true, 200},
		{"append and close", func(c *client, _ string) { c.append("/ds/trial/s", "text/plain", "end", "Stream-Closed: true") }, 200, "end", true, 200},
		{"close by a producer", func(c *client, _ string) {
			c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true", "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0")
		}, 204, "", true, 200},
		{"delete", func(c *client, _ string) { c.want(204, "DELETE", "/ds/trial/s", "") }, 404, "", false, 404},
		{"delete, with a fork", func(c *client, _ string) {
			c.want(201, "PUT", "/ds/trial/f", "", "Stream-Forked-From: /ds/trial/s")
			c.want(204, "DELETE", "/ds/trial/s", "")
		}, 410, "", false, 410},
		{"delete and create", func(c *client, _ string) {
			c.want(204, "DELETE", "/ds/trial/s", "")
			c.create("/ds/trial/s", "text/plain", "a successor, and longer")
		}, 404, "", false, 400},
		{"delete and create a closed one", func(c *client, _ string) {
			c.want(204, "DELETE", "/ds/trial/s", "")
			c.create("/ds/trial/s", "text/plain", "a successor", "Stream-Closed: true")
		}, 404, "", false, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := connect(t, api.Options{LongPollTimeout: time.Minute})
			tail := c.create("/ds/trial/s", "text/plain", "old")
			e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
			e.control()
			waiting := c.await("/ds/trial/s?live=long-poll&offset=" + tail)
			c.subscribe("/ds/trial/s?live=sse&offset=" + tail).control() // the poll is likely to wait by now
			tt.do(c, tail)
			a := <-waiting
			// A poll that came too late to wait is told what who comes back is told.
			if a.status != tt.poll && a.status != tt.back || strings.Contains(a.body, "successor") || a.status == tt.poll && tt.poll < 300 && a.body != tt.body {
				t.Errorf("long-poll: got %d %q", a.status, a.body)
			}
			if closed := a.header.Get("Stream-Closed") == "true"; closed != tt.closed {
				t.Errorf("long-poll: closed %t", closed)
			}
			if tt.closed {
				var at control
				got := ""
				if tt.body != "" {
					got, at = e.data()
				} else {
					at = e.control()
				}
				if got != tt.body || !at.StreamClosed {
					t.Errorf("events: got %q, %+v", got, at)
				}
			}
			if got := e.next(); got != "" {
				t.Errorf("events go on: %q", got)
			}
			c.want(tt.back, "GET", "/ds/trial/s?offset="+tail, "")
		})
	}
}

// TestReaderThatASnapshotOvertakes is at an offset that is not there any more.
func TestReaderThatASnapshotOvertakes(t *testing.T) {
	c, _ := connect(t, api.Options{})
	first := c.create("/ds/trial/s", "text/plain", "one")
	tail := c.append("/ds/trial/s", "text/plain", "two")
	e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
	e.control()
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+tail, "S")
	for _, live := range []string{"sse", "long-poll"} {
		a := c.want(410, "GET", "/ds/trial/s?live="+live+"&offset="+first, "")
		if a.header.Get("Stream-Earliest-Offset") != tail || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", live, a.header)
		}
	}
	c.append("/ds/trial/s", "text/plain", "three")
	if got, _ := e.data(); got != "three" { // a reader at the snapshot reads on
		t.Errorf("got %q", got)
	}
}
