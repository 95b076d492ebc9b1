package api

import (
	"log/slog"
	"net/http"
	"time"
)

// NewHTTPServer returns a server for h with limits that suit this surface: HTTP/1.1 and
// HTTP/2, also in clear text for use behind a proxy. There is no time limit on a whole
// request or response: long ones are normal, and stalled ones are ended by h.
func NewHTTPServer(h http.Handler, o Options) *http.Server {
	o = o.withDefaults()
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler:           h,
		Protocols:         &protocols,
		ReadHeaderTimeout: o.HeaderTimeout,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		HTTP2: &http.HTTP2Config{
			// Browsers share one connection: every live reader is a stream of it.
			MaxConcurrentStreams: 1000,
			// A peer that vanished without a packet is found and dropped.
			SendPingTimeout: 30 * time.Second,
			PingTimeout:     15 * time.Second,
		},
		ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
}
