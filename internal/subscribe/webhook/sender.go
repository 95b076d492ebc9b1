// Package webhook sends signed requests to receivers that clients have named.
//
// Its invariant: no connection is made to an address that [Targets] does not permit,
// whatever a name resolves to at that moment, and no redirect or proxy is followed. An
// answer is read within bounds of size and time.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 10

// Options configure a [Sender]. The zero Options are usable.
type Options struct {
	// Targets says who may be sent to.
	Targets Targets
	// Forbidden are ports of this machine that belong to its operator.
	Forbidden []uint16
	// Timeout bounds one request, its answer included. Default 30 s.
	Timeout time.Duration
	// Resolver looks names up; nil is the system's.
	Resolver *net.Resolver
	// RootCAs verify receivers; nil is the system's.
	RootCAs *x509.CertPool
}

// Sender sends requests. It is safe for concurrent use.
type Sender struct {
	opts Options
	// local sends to localhost and nowhere else, remote to everywhere else.
	local, remote *http.Client
}

// ErrAnswer: the receiver did not accept the request.
var ErrAnswer = errors.New("webhook receiver did not answer with success")

// New returns a sender.
func New(o Options) *Sender {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	s := &Sender{opts: o}
	s.local, s.remote = s.client(true), s.client(false)
	return s
}

// Targets says who may be sent to.
func (s *Sender) Targets() Targets { return s.opts.Targets }

// Close closes idle connections.
func (s *Sender) Close() {
	s.local.CloseIdleConnections()
	s.remote.CloseIdleConnections()
}

func (s *Sender) client(local bool) *http.Client {
	d := &net.Dialer{
		Timeout:  10 * time.Second,
		Resolver: s.opts.Resolver,
		// Called with the address that is connected to, after names are resolved.
		Control: func(_, address string, _ syscall.RawConn) error { return s.check(address, local) },
	}
	t := &http.Transport{
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxAnswer,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{RootCAs: s.opts.RootCAs, MinVersion: tls.VersionTLS12},
	}
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (s *Sender) check(address string, local bool) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !s.opts.Targets.permits(a.Addr(), local) {
		return fmt.Errorf("%w: connection to %s", ErrTarget, address)
	}
	if slices.Contains(s.opts.Forbidden, a.Port()) && isOwn(a.Addr().Unmap()) {
		return fmt.Errorf("%w: connection to port %d of this machine", ErrTarget, a.Port())
	}
	return nil
}

// isOwn reports whether an address is one of this machine, as far as that is known.
func isOwn(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(own, func(n net.Addr) bool {
		p, err := netip.ParsePrefix(n.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// Send posts a JSON body and returns that of a 2xx answer, the first 64 KiB of it. Any
// other answer is [ErrAnswer], a target that is not permitted [ErrTarget].
func (s *Sender) Send(ctx context.Context, url string, body []byte, signature string) ([]byte, error) {
	local, err := s.opts.Targets.parse(url)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("send webhook: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "firn")
	r.Header.Set("Webhook-Signature", signature)
	client := s.remote
	if local {
		client = s.local
	}
	res, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("send webhook: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return nil, fmt.Errorf("%w: status %d", ErrAnswer, res.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer of webhook: %w", err)
	}
	return answer, nil
}
