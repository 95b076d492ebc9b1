package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"firn/internal/config"
)

// surface is a listener and the server on it. When stop has returned no request
// runs any more, so that what requests use can be closed.
type surface struct {
	name     string // for logs
	listener net.Listener
	tls      config.TLS
	server   *http.Server

	running sync.RWMutex // held by each request for as long as it runs
	over    bool         // guarded by running; no request begins any more
}

// listen takes an address. Nothing is answered before serve.
func listen(name, address string, t config.TLS) (*surface, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	return &surface{name: name, listener: l, tls: t}, nil
}

// URL is where the surface is, with the port that it has got.
func (s *surface) URL() string {
	if s.tls.CertFile != "" {
		return "https://" + s.listener.Addr().String()
	}
	return "http://" + s.listener.Addr().String()
}

// use sets the server whose handler answers. It is called once, before serve.
func (s *surface) use(server *http.Server) {
	next := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.RLock()
		defer s.running.RUnlock()
		if s.over {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	s.server = server
}

// serve answers until stop is called.
func (s *surface) serve() error {
	var err error
	if s.tls.CertFile != "" {
		err = s.server.ServeTLS(s.listener, s.tls.CertFile, s.tls.KeyFile)
	} else {
		err = s.server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", s.name, err)
}

// stop takes no more requests and waits for those under way. When ctx ends it cuts
// them: their connections are closed and their contexts end.
func (s *surface) stop(ctx context.Context, log *slog.Logger) error {
	err := s.server.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		log.Warn("requests did not end within the grace, cutting them", "listener", s.name)
		err = s.server.Close()
	}
	s.running.Lock()
	s.over = true
	s.running.Unlock()
	return err
}

// close gives the address back. After stop it does nothing.
func (s *surface) close() { s.listener.Close() }
