package webhook_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/subscribe/webhook"
)

func TestCheck(t *testing.T) {
	const none = webhook.Private + 1 // allowed nowhere
	for _, tt := range []struct {
		url  string
		from webhook.Targets // the strictest rule that allows it
	}{
		{"https://worker.example/hooks?x=1", webhook.Public},
		{"https://93.184.215.14:8443/", webhook.Public},
		{"https://[2606:4700::1111]/", webhook.Public},
		{"http://localhost/x", webhook.Localhost},
		{"http://LOCALHOST:8080/x", webhook.Localhost},
		{"https://localhost/x", webhook.Localhost},
		{"http://127.0.0.1:80/", webhook.Localhost},
		{"http://127.0.0.255/", webhook.Localhost},
		{"http://127.0.1.1/", webhook.Private},
		{"http://[::1]/", webhook.Private},
		{"http://worker.example/", webhook.Private},
		{"http://93.184.215.14/", webhook.Private},
		{"http://10.0.0.1/hook", webhook.Private},
		{"https://10.255.255.255/", webhook.Private},
		{"https://172.16.0.1/", webhook.Private},
		{"https://192.168.1.1/", webhook.Private},
		{"https://[fd00::1]/", webhook.Private},
		{"https://[::ffff:10.0.0.1]/", webhook.Private},
		{"https://172.15.255.255/", webhook.Public},
		{"https://172.32.0.0/", webhook.Public},
		{"https://169.254.169.254/latest/meta-data", none},
		{"https://[::ffff:169.254.169.254]/", none},
		{"https://[fe80::1]/", none},
		{"https://[fe80::1%25eth0]/", none},
		{"https://0.0.0.0/", none},
		{"https://[::]/", none},
		{"https://100.64.0.1/", none},
		{"https://192.0.0.170/", none},
		{"https://198.18.0.1/", none},
		{"https://224.0.0.1/", none},
		{"https://255.255.255.255/", none},
		{"https://[64:ff9b::a00:1]/", none},
		{"https://[2002:a00:1::]/", none},
		{"https://[2001:0:1::]/", none},
		{"https://[ff02::1]/", none},
		{"ftp://worker.example/", none},
		{"file:///etc/passwd", none},
		{"https:worker.example", none},
		{"https:///x", none},
		{"//worker.example/", none},
		{"worker.example", none},
		{"https://user@worker.example/", none},
		{"https://user:secret@worker.example/", none},
		{"https://worker.example/#x", none},
		{"https://worker.example:port/", none},
		{"https://wor ker.example/", none},
		{"https://2130706433/", none},
		{"https://0x7f000001/", none},
		{"https://0x7f.1/", none},
		{"https://0177.0.0.1/", none},
		{"https://127.1/", none},
		{"https://010.0.0.1/", none},
		{"https://93.184.215.14./", webhook.Public},
		{"https://99999999999999999999/", none},
		{"https://127.0.0.1./", webhook.Localhost},
		{"https://localhost./", webhook.Localhost},
		{"https://hooks.localhost/", webhook.Private},
		{"https://worker.example./", webhook.Public},
		{"https://2.example/", webhook.Public},
		{"https://[::127.0.0.1]/", none},
		{"https://[::ffff:127.0.1.1]/", webhook.Private},
		{"https://[64:ff9b:1::a00:1]/", none},
		{"https://worker.example\\@127.0.0.1/", none},
		{"https://worker.example/\r\nX-Evil: 1", none},
		{"https://./", none},
		{"", none},
		{"https://a.example/" + strings.Repeat("x", webhook.MaxURL-18), webhook.Public},
		{"https://a.example/" + strings.Repeat("x", webhook.MaxURL-17), none},
	} {
		for rule := webhook.Public; rule <= webhook.Private; rule++ {
			err := rule.Check(tt.url)
			if allowed := err == nil; allowed != (rule >= tt.from) || !allowed && !errors.Is(err, webhook.ErrTarget) {
				t.Errorf("rule %d, %.60q: %v", rule, tt.url, err)
			}
		}
	}
}

// nameserver answers every question for an IPv4 address with one, and others with none.
func nameserver(t *testing.T, addr netip.Addr) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			conn.WriteTo(respond(buf[:n], addr), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// respond makes a DNS response out of a query of one question (RFC 1035 §4).
func respond(query []byte, addr netip.Addr) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5 // the root, type and class
	question := query[12:end]
	isA := question[len(question)-3] == 1
	m := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if isA {
		m[7] = 1
		m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		m = append(m, addr.AsSlice()...)
	}
	return m
}

// The address counts that a name resolves to when a connection is made, not the name.
func TestNamesOfPrivateAddresses(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	target := "https://example.com:" + u.Port() + "/" // a name of the certificate
	port, _ := strconv.ParseUint(u.Port(), 10, 16)
	for name, tt := range map[string]struct {
		o    webhook.Options
		sent bool
	}{
		"public":                       {webhook.Options{Targets: webhook.Public}, false},
		"localhost":                    {webhook.Options{Targets: webhook.Localhost}, false},
		"private":                      {webhook.Options{Targets: webhook.Private}, true},
		"private, the operator's port": {webhook.Options{Targets: webhook.Private, Forbidden: []uint16{uint16(port)}}, false},
	} {
		hits.Store(0)
		tt.o.RootCAs, tt.o.Resolver = roots, nameserver(t, netip.MustParseAddr("127.0.0.1"))
		if err := tt.o.Targets.Check(target); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := webhook.New(tt.o)
		_, err := s.Send(t.Context(), target, []byte("{}"), "")
		s.Close()
		if tt.sent != (err == nil) || !tt.sent && !errors.Is(err, webhook.ErrTarget) || (hits.Load() == 1) != tt.sent {
			t.Errorf("%s: %v, %d requests", name, err, hits.Load())
		}
	}
}

// By the exception for development nothing but this machine is reached.
func TestLocalhostStaysLocal(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := webhook.New(webhook.Options{Targets: webhook.Localhost})
	t.Cleanup(s.Close)
	if got, err := s.Send(t.Context(), srv.URL, []byte("{}"), ""); err != nil || string(got) != "ok" {
		t.Errorf("send to %s: %q, %v", srv.URL, got, err)
	}
	port, _ := strconv.ParseUint(u.Port(), 10, 16)
	s = webhook.New(webhook.Options{Targets: webhook.Localhost, Forbidden: []uint16{uint16(port)}})
	t.Cleanup(s.Close)
	if _, err := s.Send(t.Context(), srv.URL, []byte("{}"), ""); !errors.Is(err, webhook.ErrTarget) {
		t.Errorf("send to the operator's port: %v", err)
	}
}

// Redirects are answers like others, proxies of the environment are not asked.
func TestNothingIsFollowed(t *testing.T) {
	var hits atomic.Int64
	behind := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(behind.Close)
	t.Setenv("HTTP_PROXY", behind.URL)
	srv := httptest.NewServer(http.RedirectHandler(behind.URL, http.StatusTemporaryRedirect))
	t.Cleanup(srv.Close)
	s := webhook.New(webhook.Options{Targets: webhook.Localhost})
	t.Cleanup(s.Close)
	if _, err := s.Send(t.Context(), srv.URL, []byte("{}"), ""); !errors.Is(err, webhook.ErrAnswer) || hits.Load() != 0 {
		t.Errorf("redirect: %v, %d requests behind it", err, hits.Load())
	}
}

func TestSlowAnswersAreCut(t *testing.T) {
	release := make(chan struct{})
	for name, h := range map[string]http.HandlerFunc{
		"no header": func(_ http.ResponseWriter, r *http.Request) { <-release },
		"no end": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "{")
			http.NewResponseController(w).Flush()
			<-release
		},
	} {
		srv := httptest.NewServer(h)
		s := webhook.New(webhook.Options{Targets: webhook.Localhost, Timeout: 50 * time.Millisecond})
		if _, err := s.Send(t.Context(), srv.URL, []byte("{}"), ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
		t.Cleanup(srv.Close)
	}
	close(release)
}

func TestSignature(t *testing.T) {
	seed := make([]byte, ed25519.SeedSize)
	k, err := webhook.NewKey(seed)
	if err != nil {
		t.Fatal(err)
	}
	// The key of 32 zero bytes, and its thumbprint by RFC 7638.
	if j := k.JWK(); j.X != "O2onvM62pC1io6jQKm8Nc2UyFXcd4kOmOsBIoYtZ2ik" || j.Kid != k.ID || !strings.HasPrefix(j.Kid, "ds_") || len(j.Kid) != 46 {
		t.Errorf("public key %+v", j)
	}
	body := []byte(`{"a":1}`)
	head, sig, _ := strings.Cut(k.Sign(time.Unix(1_700_000_000, 999), body), ",ed25519=")
	if head != "t=1700000000,kid="+k.ID {
		t.Errorf("signature begins with %q", head)
	}
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if err != nil || !ed25519.Verify(public, []byte(`1700000000.{"a":1}`), raw) {
		t.Errorf("signature %q, %v", sig, err)
	}
	for _, n := range []int{0, 31, 33} {
		if _, err := webhook.NewKey(make([]byte, n)); err == nil {
			t.Errorf("a seed of %d bytes makes a key", n)
		}
	}
}

// A receiver must prove that it is whom the URL names.
func TestReceiversAreVerified(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	for name, tt := range map[string]struct {
		roots *x509.CertPool
		host  string
		ok    bool
	}{
		"known":                {roots, "127.0.0.1", true},
		"of unknown authority": {x509.NewCertPool(), "127.0.0.1", false},
		"another's":            {roots, "localhost", false},
	} {
		s := webhook.New(webhook.Options{Targets: webhook.Localhost, RootCAs: tt.roots})
		_, err := s.Send(t.Context(), strings.Replace(srv.URL, "127.0.0.1", tt.host, 1), []byte("{}"), "")
		s.Close()
		if verification := new(tls.CertificateVerificationError); (err == nil) != tt.ok || !tt.ok && !errors.As(err, &verification) {
			t.Errorf("a certificate that is %s: %v", name, err)
		}
	}
}

// The operator's port is closed at every address of this machine, whatever is allowed.
func TestForbiddenPortOnAllAddresses(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	s := webhook.New(webhook.Options{Targets: webhook.Private, Forbidden: []uint16{9}})
	t.Cleanup(s.Close)
	for _, a := range own {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || p.Addr().IsLinkLocalUnicast() {
			continue // never allowed
		}
		_, err = s.Send(t.Context(), "http://"+netip.AddrPortFrom(p.Addr(), 9).String(), []byte("{}"), "")
		if !errors.Is(err, webhook.ErrTarget) {
			t.Errorf("%s: %v", p.Addr(), err)
		}
	}
}

// An answer of any size costs no more than its first 64 KiB.
func TestLongAnswersAreCut(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	s := webhook.New(webhook.Options{Targets: webhook.Localhost})
	t.Cleanup(s.Close)
	if got, err := s.Send(t.Context(), srv.URL, []byte("{}"), ""); err != nil || len(got) != 64<<10 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
