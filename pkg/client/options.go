package client

import (
	"net/http"
	"time"
)

// Options configures a [Stream] or a [Client]. The zero Options is usable.
type Options struct {
	// HTTP makes the requests (default [http.DefaultClient]). It should have no
	// Timeout: live reads take long.
	HTTP *http.Client
	// Header goes into every request, for example an Authorization.
	Header http.Header
	// Retry says how failed requests are repeated.
	Retry Retry
	// Live is how readers wait at the tail (default [Auto]).
	Live Live
	// Silence is how long the server may send nothing before a request counts as
	// failed (default 90 s). It should be longer than the server's long-poll and the
	// pauses between its events. It does not bound Append, Delete and PublishSnapshot.
	Silence time.Duration
	// PageBytes bounds one page in memory, as it is on the wire (default 256 MiB).
	// A larger one is an [ErrAnswer].
	PageBytes int
}

// Live is a way to wait at the tail.
type Live uint8

const (
	// Auto is SSE, but LongPoll for text, whose line ends SSE does not keep, and
	// where SSE does not work.
	Auto Live = iota
	// SSE reads Server-Sent Events (B§5.8).
	SSE
	// LongPoll asks again and again (B§5.7).
	LongPoll
)

func (o Options) withDefaults() Options {
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	if o.Silence <= 0 {
		o.Silence = 90 * time.Second
	}
	if o.PageBytes <= 0 {
		o.PageBytes = 256 << 20
	}
	o.Retry = o.Retry.withDefaults()
	return o
}
