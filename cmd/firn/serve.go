package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/internal/api"
	"firn/internal/config"
)

// serveCommand is `firn serve`.
type serveCommand struct{ settings }

// Run serves until ctx ends, then drains.
func (c *serveCommand) Run(ctx context.Context, i *invocation) error {
	conf, _, err := c.load(i.environ)
	if err != nil {
		return err
	}
	log := newLogger(i.stderr, conf.Log)
	p, err := build(ctx, conf, log)
	if err != nil {
		return err
	}
	err = p.serve(ctx, conf, log, i.stdout)
	return errors.Join(err, p.close())
}

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// serve listens and works until ctx ends or something fails. Then live readers get
// their closing answer, requests in flight end within the grace, and the
// background work stops.
func (p *parts) serve(ctx context.Context, c config.Config, log *slog.Logger, stdout io.Writer) error {
	clients, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen for clients: %w", err)
	}
	defer clients.Close()
	operators, err := net.Listen("tcp", c.Admin.Listen)
	if err != nil {
		return fmt.Errorf("listen for operators: %w", err)
	}
	defer operators.Close()

	server := api.NewHTTPServer(p.api.Handler(), p.apiOptions)
	adminServer := &http.Server{Handler: p.admin, ReadHeaderTimeout: 10 * time.Second}
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serving(server, clients, c.TLS) })
	g.Go(func() error { return serving(adminServer, operators, config.TLS{}) })
	g.Go(func() error { return p.hot.Run(work) })
	g.Go(func() error { return p.compactor.Run(work) })
	g.Go(func() error {
		<-ctx.Done()
		log.Info("draining", "grace", time.Duration(c.Shutdown.Grace))
		grace, cancel := context.WithTimeout(context.Background(), time.Duration(c.Shutdown.Grace))
		defer cancel()
		p.drain()
		err := server.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			log.Warn("requests did not end within the grace, cutting them")
			err = server.Close()
		}
		stopWork()
		return errors.Join(err, adminServer.Close())
	})

	fmt.Fprintf(stdout, "firn serves http://%s, admin on http://%s, data in %s, cold storage %s\n",
		clients.Addr(), operators.Addr(), c.DataDir, c.Cold.URL)
	log.Info("serving", "listen", clients.Addr().String(), "admin", operators.Addr().String(), "cold", c.Cold.URL.String())
	return g.Wait()
}

func serving(s *http.Server, l net.Listener, t config.TLS) error {
	var err error
	if t.CertFile != "" {
		err = s.ServeTLS(l, t.CertFile, t.KeyFile)
	} else {
		err = s.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
