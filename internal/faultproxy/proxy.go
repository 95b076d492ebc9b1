package faultproxy

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Options of a proxy. Upstream is required.
type Options struct {
	Upstream string // URL of the store
	// AccessKey and SecretKey sign requests that a rule has changed.
	AccessKey, SecretKey string
}

// Proxy is a running proxy.
type Proxy struct {
	URL string // endpoint for clients

	opts      Options
	upstream  *url.URL
	transport *http.Transport
	ended     chan struct{} // closed when the test ends: nothing hangs any longer

	mu    sync.Mutex // guards what follows
	rules []*line
	calls []Call
}

// line is a rule and how often it was met.
type line struct {
	Rule
	seen, fired int
}

// Call is a request that came in.
type Call struct {
	At     time.Time
	Method string
	Path   string // with the query
	Length int64  // of the request's body
	Range  string
}

// Start runs a proxy on the loopback interface until the test ends.
func Start(t testing.TB, opts Options) *Proxy {
	t.Helper()
	upstream, err := url.Parse(opts.Upstream)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		opts: opts, upstream: upstream, ended: make(chan struct{}),
		transport: &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 256},
	}
	srv := httptest.NewUnstartedServer(p)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of requests that rules break off
	srv.Start()
	p.URL = srv.URL
	t.Cleanup(func() {
		close(p.ended)
		srv.CloseClientConnections()
		srv.Close()
		p.transport.CloseIdleConnections()
	})
	return p
}

// Rule adds rules. Of several that fit a request the first takes it.
func (p *Proxy) Rule(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range rules {
		p.rules = append(p.rules, &line{Rule: r})
	}
}

// Clear drops all rules. Requests that hang go on hanging.
func (p *Proxy) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = nil
}

// Fired returns how often rules have fired since Clear.
func (p *Proxy) Fired() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.rules {
		n += l.fired
	}
	return n
}

// Calls returns the requests that a rule would fit, in the order they came.
func (p *Proxy) Calls(method, path string) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []Call
	for _, c := range p.calls {
		if (Rule{Method: method, Path: path}).fits(c.Method, c.Path) {
			calls = append(calls, c)
		}
	}
	return calls
}

// Forget empties the record of requests.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// ServeHTTP passes a request on or does what a rule says.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &Exchange{Writer: w, Request: r, proxy: p}
	if do := p.take(r); do != nil {
		do(x)
		return
	}
	x.Pass()
}

// take notes a request and returns the action for it, or nil.
func (p *Proxy) take(r *http.Request) Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	path := r.URL.RequestURI()
	p.calls = append(p.calls, Call{time.Now(), r.Method, path, r.ContentLength, r.Header.Get("Range")})
	for _, l := range p.rules {
		if l.fits(r.Method, path) && l.fire() {
			return l.Do
		}
	}
	return nil
}

func (l *line) fire() bool {
	times := max(l.Times, 1)
	if l.Times == Always {
		times = l.fired + 1
	}
	if l.seen++; l.seen <= l.Skip || l.fired >= times || (l.seen-l.Skip-1)%max(l.Every, 1) != 0 {
		return false
	}
	l.fired++
	return true
}

// Exchange is one request on its way.
type Exchange struct {
	Writer  http.ResponseWriter
	Request *http.Request
	proxy   *Proxy
}

// Forward sends the request to the store and returns its answer, or breaks the
// connection off where there is none.
func (x *Exchange) Forward(ctx context.Context) *http.Response {
	r := x.Request.Clone(ctx)
	r.URL.Scheme, r.URL.Host = x.proxy.upstream.Scheme, x.proxy.upstream.Host
	r.RequestURI = ""
	res, err := x.proxy.transport.RoundTrip(r)
	if err != nil {
		x.Abort()
	}
	return res
}

// Pass forwards the request and gives its answer back.
func (x *Exchange) Pass() {
	res := x.Forward(x.Request.Context())
	defer res.Body.Close()
	x.Header(res)
	_, _ = io.Copy(x.Writer, res.Body)
}

// Header gives the header of an answer back.
func (x *Exchange) Header(res *http.Response) {
	h := x.Writer.Header()
	for name, values := range res.Header {
		if !strings.EqualFold(name, "Connection") {
			h[name] = values
		}
	}
	x.Writer.WriteHeader(res.StatusCode)
}

// Abort breaks the connection off without an answer, or within one.
func (x *Exchange) Abort() { panic(http.ErrAbortHandler) }

// Wait waits, or until the client leaves or the test ends.
func (x *Exchange) Wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.Request.Context().Done():
	case <-x.proxy.ended:
	}
}
