package api_test

import (
	"testing"

	"firn/internal/api"
)

// TestIntegersBeyondDoubles: JavaScript's numbers are exact up to 2^53-1. That is the
// largest number of a producer; larger ones in messages keep their spelling.
func TestIntegersBeyondDoubles(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const largest, next = "9007199254740991", "9007199254740992"
	const path, json = "/ds/trial/s", "Content-Type: application/json"
	c.create(path, "application/json", "")
	by := func(epoch, seq string) []string {
		return []string{json, "Producer-Id: p", "Producer-Epoch: " + epoch, "Producer-Seq: " + seq}
	}
	for _, tt := range []struct {
		epoch, seq string
		status     int
		header     map[string]string
	}{
		{next, "0", 400, nil},
		{"0", next, 400, nil},
		{"9223372036854775808", "0", 400, nil},
		{"18446744073709551616", "0", 400, nil}, // 2^64: not 0
		{"0", "18446744073709551616", 400, nil}, //
		{"0", largest, 409, map[string]string{"Producer-Expected-Seq": "0", "Producer-Received-Seq": largest}},
		{"9007199254740990", "0", 200, map[string]string{"Producer-Epoch": "9007199254740990", "Producer-Seq": "0"}},
		{largest, "1", 400, nil},
		{largest, "0", 200, map[string]string{"Producer-Epoch": largest, "Producer-Seq": "0"}},
		{largest, "0", 204, map[string]string{"Producer-Epoch": largest, "Producer-Seq": "0"}},
		{"9007199254740990", "1", 403, map[string]string{"Producer-Epoch": largest}},
		{largest, largest, 409, map[string]string{"Producer-Expected-Seq": "1", "Producer-Received-Seq": largest}},
		{largest, "1", 200, map[string]string{"Producer-Seq": "1"}},
	} {
		a := c.do("POST", path, "[1]", by(tt.epoch, tt.seq)...)
		if a.status != tt.status {
			t.Errorf("%s, %s: got %d %s, want %d", tt.epoch, tt.seq, a.status, a.body, tt.status)
		}
		for name, want := range tt.header {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s, %s: %s is %q, want %q", tt.epoch, tt.seq, name, got, want)
			}
		}
	}

	for ttl, status := range map[string]int{
		"9007199254740": 201, "9007199254741": 400, largest: 400, "9223372036854775807": 400, "18446744073709551617": 400,
	} {
		a := c.do("PUT", "/ds/trial/ttl", "", "Stream-TTL: "+ttl)
		if a.status != status {
			t.Errorf("TTL %s: got %d %s, want %d", ttl, a.status, a.body, status)
		}
		if status != 201 {
			continue
		}
		if got := c.want(200, "HEAD", "/ds/trial/ttl", "").header.Get("Stream-TTL"); got != ttl {
			t.Errorf("TTL %s became %s", ttl, got)
		}
		c.want(204, "DELETE", "/ds/trial/ttl", "")
	}
}

// TestNumbersKeepTheirSpelling: nothing reads a message's numbers.
func TestNumbersKeepTheirSpelling(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const path, json = "/ds/trial/n", "Content-Type: application/json"
	const numbers = `[9007199254740993,-9007199254740993,123456789012345678901234567890,1e400,-0,0.10,1E+2,1.000,-0.0e-0,{"n":18446744073709551616}]`
	tail := c.create(path, "application/json", " [ "+numbers[1:len(numbers)-1]+" ] ")
	c.append(path, "application/json", "["+numbers+"]") // one message: an array
	want := numbers[:len(numbers)-1] + "," + numbers + "]"
	for _, query := range []string{"", "?offset=-1&live=long-poll"} {
		if got := c.want(200, "GET", path+query, "").body; got != want {
			t.Errorf("%s: got %s", query, got)
		}
	}
	if got, _ := c.subscribe(path + "?offset=-1&live=sse").data(); got != want {
		t.Errorf("events: got %s", got)
	}
	c.want(201, "PUT", "/ds/trial/f", "[9007199254740993]", json, "Stream-Forked-From: "+path, "Stream-Fork-Offset: "+tail)
	if got := c.want(200, "GET", "/ds/trial/f", "").body; got != numbers[:len(numbers)-1]+",9007199254740993]" {
		t.Errorf("fork: got %s", got)
	}
}
