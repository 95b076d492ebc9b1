package api

import (
	"crypto/rand"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/subscribe"
	"firn/tier"
)

// Options configure a [Server]. Every field but Store has a default.
type Options struct {
	// Store answers everything that a request asks for.
	Store *tier.Store
	// Subscriptions serves the control APIs (B§6); nil leaves them out.
	Subscriptions *subscribe.Engine
	// Logger takes what a person should know; nil discards.
	Logger *slog.Logger
	// Registerer takes the metrics; nil keeps them unregistered.
	Registerer prometheus.Registerer

	// AppendBytes bounds the body of a create or an append. Default 16 MiB.
	AppendBytes int64
	// InflightBytes bounds the buffers of all such bodies together. Default 256 MiB.
	InflightBytes int64
	// OutgoingBytes bounds the answers to reads above 64 KiB that clients have not
	// taken yet, all together. Default 512 MiB.
	OutgoingBytes int64
	// OutgoingWait is how long an answer waits for others to be taken. Default 5 s.
	OutgoingWait time.Duration
	// SnapshotBytes bounds a snapshot blob. Default 128 MiB.
	SnapshotBytes int64

	// LongPollTimeout is how long a long-poll waits for data. Default 25 s.
	LongPollTimeout time.Duration
	// SSEHeartbeat is the silence after which an event stream gets a comment. Default 15 s.
	SSEHeartbeat time.Duration
	// SSEMaxAge is when an event stream is ended, for its client to reconnect. Default 60 s.
	SSEMaxAge time.Duration

	// HeaderTimeout bounds the reading of a request's header. Default 10 s.
	HeaderTimeout time.Duration
	// BodyIdleTimeout is how long a request body may send nothing, and how long it may
	// send less than 1 KiB a second on average. Default 30 s.
	BodyIdleTimeout time.Duration
	// WriteStallTimeout is how long a client may take nothing of what is sent. Default 60 s.
	WriteStallTimeout time.Duration

	// CORS says which web pages may use the server.
	CORS CORS
	// CachePublic lets shared caches keep catch-up reads (B§10.1). Only for streams that
	// anybody may read.
	CachePublic bool
	// NoCompression sends every answer as it is, whatever codings its client accepts.
	NoCompression bool
	// TrustedProxies are the peers whose X-Forwarded-Proto and X-Forwarded-Host count, of
	// lists the last element.
	TrustedProxies []netip.Prefix

	// Clock is the time of cursors; nil is time.Now.
	Clock func() time.Time
	// Random feeds multipart boundaries and the jitter of cursors; nil is crypto/rand.
	Random io.Reader
}

// CORS says which web pages may use the server. The zero CORS admits every origin,
// without credentials.
type CORS struct {
	// Off sends no CORS headers at all.
	Off bool
	// Origins admits only these, spelt as browsers do ("https://app.example"). Empty, or
	// with "*" among them: every origin.
	Origins []string
}

func (c CORS) admitsAll() bool {
	return !c.Off && (len(c.Origins) == 0 || slices.Contains(c.Origins, "*"))
}

func (o Options) withDefaults() Options {
	setDefault(&o.AppendBytes, 16<<20)
	setDefault(&o.InflightBytes, 256<<20)
	setDefault(&o.OutgoingBytes, 512<<20)
	setDefault(&o.OutgoingWait, 5*time.Second)
	setDefault(&o.SnapshotBytes, 128<<20)
	setDefault(&o.LongPollTimeout, 25*time.Second)
	setDefault(&o.SSEHeartbeat, 15*time.Second)
	setDefault(&o.SSEMaxAge, 60*time.Second)
	setDefault(&o.HeaderTimeout, 10*time.Second)
	setDefault(&o.BodyIdleTimeout, 30*time.Second)
	setDefault(&o.WriteStallTimeout, 60*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return o
}

func setDefault[T int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
