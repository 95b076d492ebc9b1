package exchange

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrURL: not the address of a server.
var ErrURL = errors.New("not an http or https URL")

// Endpoint is a server, and the path under which something lives there.
type Endpoint struct {
	secure bool
	host   string // with a port
	base   string // without a slash at its end
	fields string // of every request, lines with CRLF
}

// Parse reads a URL. Each field is "Name: value" and goes into every request.
func Parse(rawURL string, fields ...string) (*Endpoint, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return nil, fmt.Errorf("%q: %w", rawURL, ErrURL)
	}
	e := &Endpoint{secure: u.Scheme == "https", host: u.Host, base: strings.TrimRight(u.EscapedPath(), "/")}
	if u.Port() == "" {
		e.host = net.JoinHostPort(u.Hostname(), map[bool]string{false: "80", true: "443"}[e.secure])
	}
	for _, f := range fields {
		if name, _, ok := strings.Cut(f, ":"); !ok || name == "" || strings.ContainsAny(f, "\r\n") {
			return nil, fmt.Errorf("%q is no header field, write \"Name: value\"", f)
		}
		e.fields += f + "\r\n"
	}
	return e, nil
}

// Below is the endpoint of a path below this one's.
func (e *Endpoint) Below(path string) *Endpoint {
	below := *e
	below.base += path
	return &below
}

func (e *Endpoint) String() string {
	if e.secure {
		return "https://" + e.host + e.base
	}
	return "http://" + e.host + e.base
}

func (e *Endpoint) connect(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	if e.secure {
		return (&tls.Dialer{NetDialer: &d, Config: &tls.Config{NextProtos: []string{"http/1.1"}}}).DialContext(ctx, "tcp", e.host)
	}
	return d.DialContext(ctx, "tcp", e.host)
}

// Request puts a request together: its target is below the endpoint's path, fields are
// "Name: value".
func (e *Endpoint) Request(method, target string, body []byte, fields ...string) []byte {
	var b []byte
	b = append(b, method+" "+e.base+target+" HTTP/1.1\r\nHost: "+e.host+"\r\n"+e.fields...)
	for _, f := range fields {
		b = append(b, f+"\r\n"...)
	}
	if body != nil || method == "POST" || method == "PUT" {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, body...)
}
