package api

import "net/http"

// Header names in the canonical form of net/http, which needs no work to look up.
const (
	headerAcceptEncoding  = "Accept-Encoding"
	headerAllow           = "Allow"
	headerAllowOrigin     = "Access-Control-Allow-Origin"
	headerExposeHeaders   = "Access-Control-Expose-Headers"
	headerCacheControl    = "Cache-Control"
	headerContentEncoding = "Content-Encoding"
	headerContentLength   = "Content-Length"
	headerContentType     = "Content-Type"
	headerETag            = "Etag"
	headerLocation        = "Location"
	headerRetryAfter      = "Retry-After"
	headerServerTiming    = "Server-Timing"
	headerCursor          = "Stream-Cursor"
	headerClosed          = "Stream-Closed"
	headerEarliest        = "Stream-Earliest-Offset"
	headerExpiresAt       = "Stream-Expires-At"
	headerForkOffset      = "Stream-Fork-Offset"
	headerForkSubOffset   = "Stream-Fork-Sub-Offset"
	headerForkedFrom      = "Stream-Forked-From"
	headerNextOffset      = "Stream-Next-Offset"
	headerSeq             = "Stream-Seq"
	headerSnapshotOffset  = "Stream-Snapshot-Offset"
	headerSSEEncoding     = "Stream-Sse-Data-Encoding"
	headerTTL             = "Stream-Ttl"
	headerUpToDate        = "Stream-Up-To-Date"
	headerVary            = "Vary"
	headerProducerID      = "Producer-Id"
	headerProducerEpoch   = "Producer-Epoch"
	headerProducerSeq     = "Producer-Seq"
	headerExpectedSeq     = "Producer-Expected-Seq"
	headerReceivedSeq     = "Producer-Received-Seq"
)

// once returns the value of a header that may be given once: of two values, taking the
// first could store what was not meant. A header that is there may be empty.
func once(h http.Header, name string) (value string, given bool, err error) {
	switch v := h[name]; len(v) {
	case 0:
		return "", false, nil
	case 1:
		return v[0], true, nil
	default:
		return "", false, errHeaderRepeated
	}
}

// setTrue sets a presence header when the condition holds.
func setTrue(h http.Header, name string, condition bool) {
	if condition {
		h.Set(name, "true")
	}
}

// fixedHeader is the same on every answer; its values are shared by all, and replaced,
// never changed.
type fixedHeader struct {
	name   string
	values []string
}

// fixedHeaders are what every answer begins with (B§12.7).
func fixedHeaders(c CORS) []fixedHeader {
	fixed := []fixedHeader{
		{"X-Content-Type-Options", []string{"nosniff"}},
		{"Cross-Origin-Resource-Policy", []string{"cross-origin"}},
		{headerCacheControl, []string{"no-store"}}, // what may be cached says so itself
	}
	if c.admitsAll() {
		fixed = append(fixed,
			fixedHeader{headerAllowOrigin, []string{"*"}},
			fixedHeader{headerExposeHeaders, []string{corsExpose}})
	}
	return fixed
}
