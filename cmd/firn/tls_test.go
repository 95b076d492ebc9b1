package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes one for 127.0.0.1 and its key, and returns who trusts it.
func certificate(t *testing.T) (certFile, keyFile string, trust *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	trust = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	trust.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private), trust
}

func TestTLS(t *testing.T) {
	certFile, keyFile, trust := certificate(t)
	s := start(t, t.TempDir(), "--tls.cert-file", certFile, "--tls.key-file", keyFile)
	for _, proto := range []string{"HTTP/2.0", "HTTP/1.1"} {
		var p http.Protocols
		p.SetHTTP1(proto == "HTTP/1.1")
		p.SetHTTP2(proto == "HTTP/2.0")
		tr := &http.Transport{Protocols: &p, TLSClientConfig: &tls.Config{RootCAs: trust}}
		t.Cleanup(tr.CloseIdleConnections)
		path := s.url + "/v1/stream/" + proto
		req, err := http.NewRequest("PUT", path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 201 || res.Proto != proto || res.Header.Get("Location") != path {
			t.Errorf("%s: got %s over %s, Location %q", proto, res.Status, res.Proto, res.Header.Get("Location"))
		}
	}
	// Who speaks no TLS is told so, by net/http.
	plain, err := net.Dial("tcp", s.url[len("https://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	io.WriteString(plain, "GET /v1/stream/x HTTP/1.1\r\nHost: x\r\n\r\n")
	if got, _ := io.ReadAll(plain); !strings.HasPrefix(string(got), "HTTP/1.0 400") {
		t.Errorf("in clear: %q", got)
	}
}
