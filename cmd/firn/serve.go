package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/internal/api"
	"firn/internal/config"
)

// serveCommand is `firn serve`.
type serveCommand struct{ settings }

// Run serves until ctx ends, then drains. Addresses are taken before the store is
// opened: a start that fails at them has touched nothing.
func (c *serveCommand) Run(ctx context.Context, i *invocation) error {
	conf, _, err := c.load(i.environ)
	if err != nil {
		return err
	}
	limit, err := openFiles()
	if err != nil {
		return err
	}
	files, err := divide(limit)
	if err != nil {
		return err
	}
	clients, err := listen("clients", conf.Listen, conf.TLS)
	if err != nil {
		return err
	}
	defer clients.close()
	operators, err := listen("operators", conf.Admin.Listen, config.TLS{})
	if err != nil {
		return err
	}
	defer operators.close()

	log := newLogger(i.stderr, conf.Log)
	conf.Admin.Listen = operators.listener.Addr().String() // with the port that it has got
	clients.listener = files.bound(clients.listener, log)
	p, err := build(ctx, conf, files, log)
	if err != nil {
		return err
	}
	clients.use(api.NewHTTPServer(p.api.Handler(), p.apiOptions))
	operators.use(&http.Server{Handler: p.admin, ReadHeaderTimeout: 10 * time.Second})
	fmt.Fprintf(i.stdout, "firn serves %s, admin on %s, data in %s, cold storage %s\n",
		clients.URL(), operators.URL(), conf.DataDir, conf.Cold.URL)
	log.Info("serving", "listen", clients.URL(), "admin", operators.URL(), "cold", conf.Cold.URL.String())
	err = p.serve(ctx, time.Duration(conf.Shutdown.Grace), clients, operators, log)
	return errors.Join(err, p.close())
}

// serve works until ctx ends or something fails. Then live readers get their
// closing answer, requests under way end within the grace, and the background work
// stops. The operators' surface goes last: it tells that the server is draining.
func (p *parts) serve(ctx context.Context, grace time.Duration, clients, operators *surface, log *slog.Logger) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()

	g, ctx := errgroup.WithContext(ctx)
	g.Go(clients.serve)
	g.Go(operators.serve)
	g.Go(func() error { return p.hot.Run(work) })
	g.Go(func() error { return p.compactor.Run(work) })
	g.Go(func() error { return p.scrub.Run(work) })
	g.Go(func() error { return p.subscriptions.Run(work) })
	if p.backup != nil {
		g.Go(func() error { return p.backup.Run(work) })
	}
	g.Go(func() error {
		<-ctx.Done()
		log.Info("draining", "grace", grace)
		patience, cancel := context.WithTimeout(work, grace)
		defer cancel()
		p.drain()
		err := clients.stop(patience, log)
		p.api.Shutdown(patience)
		err = errors.Join(err, operators.stop(patience, log))
		stopWork()
		return err
	})
	err := g.Wait()
	p.lastCopy(log)
	log.Info("stopped")
	return err
}

// lastCopyTimeout bounds the last copy of the catalog: a bucket that is away holds no
// stop up for long.
const lastCopyTimeout = 10 * time.Second

// lastCopy copies what has changed to the end. Nothing works any more.
func (p *parts) lastCopy(log *slog.Logger) {
	if p.backup == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastCopyTimeout)
	defer cancel()
	if err := p.backup.Stop(ctx); err != nil {
		log.Warn("the last copy of the catalog was not made", "err", err)
	}
}
