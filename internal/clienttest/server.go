// Package clienttest runs a whole server in this process, and breaks the connections to
// it, for tests of package client. Its own tests are those that need a real server.
package clienttest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/api"
	"firn/internal/blob"
	"firn/internal/blob/mem"
	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// Options are what differs from a server with all defaults.
type Options struct {
	API  api.Options
	Tier tier.Options
	// Cold: what a request has written to a stream of the bucketed surface is in the
	// cold tier alone before it is answered.
	Cold bool
}

// Server is a server on a port of this machine. Its data are in memory, and survive
// Restart and Crash.
type Server struct {
	o       Options
	disk    *disk.Disk
	objects blob.Store
	address string // empty before the first start

	hot       *hot.Store
	cold      *cold.Store
	compactor *compactor.Compactor
	api       *api.Server
	gate      *gate
	http      *http.Server
	served    chan error
}

// Serve starts a server that stops with the test.
func Serve(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Open starts a server; the caller closes it.
func Open(o Options) (*Server, error) {
	s := &Server{o: o, disk: disk.New(), objects: mem.New(mem.Options{})}
	return s, s.start()
}

// URL is the root of the server.
func (s *Server) URL() string { return "http://" + s.address }

func (s *Server) start() (err error) {
	s.hot, err = hot.Open("hot", hot.Options{
		FS: s.disk.FS(), MemTableBytes: 4 << 20, CacheBytes: 8 << 20, Fatal: func(msg string) { panic(msg) },
	})
	if err != nil {
		return err
	}
	if s.cold, err = cold.Open(s.objects, cold.Options{StoreID: s.hot.ID()}); err != nil {
		return err
	}
	claim := cold.ClaimOptions{Fence: s.hot.Fence(), Remember: s.hot.SetFence}
	if err := s.cold.Claim(context.Background(), claim); err != nil {
		return err
	}
	encoder, err := segment.NewEncoder(segment.Options{Level: 1})
	if err != nil {
		return err
	}
	s.compactor, err = compactor.New(compactor.Options{Hot: s.hot, Cold: s.cold, Encoder: encoder})
	if err != nil {
		return err
	}
	t := s.o.Tier
	t.Hot, t.Cold, t.SpoolDir = s.hot, s.cold, os.TempDir()
	a := s.o.API
	a.Store = tier.New(t)
	s.api = api.New(a)
	handler := s.api.Handler()
	if s.o.Cold {
		handler = s.evicting(handler)
	}
	s.gate = &gate{next: handler}
	s.http = api.NewHTTPServer(s.gate, a)
	address := s.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s.address = l.Addr().String()
	s.served = make(chan error, 1)
	go func() { s.served <- s.http.Serve(l) }()
	return nil
}

// Close stops the server as an operator would: live readers get their closing answer.
func (s *Server) Close() error {
	s.api.Drain()
	grace, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		s.http.Close()
	}
	s.api.Shutdown(grace)
	return s.end()
}

// end closes the parts below HTTP once no handler uses them.
func (s *Server) end() error {
	if err := <-s.served; err != http.ErrServerClosed {
		return err
	}
	s.gate.close()
	s.cold.Close()
	return s.hot.Close()
}

// Restart stops the server and starts another one at the same address with the same
// data. It calls between while there is none.
func (s *Server) Restart(between func()) error {
	if err := s.Close(); err != nil {
		return err
	}
	between()
	return s.start()
}

// Crash is Restart after a loss of power: connections break, whatever was not synced is
// gone.
func (s *Server) Crash(between func()) error {
	s.http.Close()
	cut, cancel := context.WithCancel(context.Background())
	cancel()
	s.api.Shutdown(cut)
	after := s.disk.Crash()
	s.api.Drain()
	if err := s.end(); err != nil { // what it still writes, nobody will see
		return err
	}
	s.disk = after
	between()
	return s.start()
}

// Evict moves all bytes of a stream to the cold tier.
func (s *Server) Evict(ctx context.Context, n stream.Name) error {
	v := s.hot.View()
	rec, err := v.Stream(n)
	v.Close()
	if err != nil {
		return fmt.Errorf("find %s: %w", n, err)
	}
	if err := s.compactor.SealStream(ctx, rec.ID); err != nil {
		return err
	}
	return s.compactor.EvictStream(ctx, rec.ID)
}
