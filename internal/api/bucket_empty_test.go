package api_test

import (
	"testing"

	"firn/internal/api"
)

// A bucket can be deleted when nothing needs it: neither a stream nor what a fork in
// another bucket has inherited. Made again it is empty (X§1.5).
func TestSoftDeletedStreamHoldsItsBucket(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.want(201, "PUT", "/ds/source", "")
	c.create("/ds/source/s", "text/plain", "x")
	c.create("/ds/source/expired", "text/plain", "", "Stream-TTL: 0")
	c.want(201, "PUT", "/ds/trial/fork", "", "Stream-Forked-From: /ds/source/s")
	held := func(why string) {
		t.Helper()
		if a := c.want(409, "DELETE", "/ds/source", ""); a.code() != "bucket_not_empty" {
			t.Errorf("%s: %s", why, a.body)
		}
		if a := c.want(200, "GET", "/ds/trial/fork", ""); a.body != "x" {
			t.Errorf("%s: the fork has %q", why, a.body)
		}
	}
	held("a stream")
	c.want(204, "DELETE", "/ds/source/s", "")
	held("a soft-deleted stream")
	c.want(204, "DELETE", "/ds/trial/fork", "")
	c.want(204, "DELETE", "/ds/source", "")
	c.want(404, "GET", "/ds/source/s", "")
	c.want(201, "PUT", "/ds/source", "")
	c.want(404, "GET", "/ds/source/s", "")
	c.want(204, "DELETE", "/ds/source", "")
}
