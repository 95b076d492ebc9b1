// Package versitygw starts a real S3 server, versitygw, for tests.
//
// The server is a program of its own, found at $FIRN_VERSITYGW or at
// .cache/bin/versitygw below the module's root, where `make tools` puts it. A test
// that needs it fails without it; such tests carry the build tag "integration":
//
//	go test -tags integration ./internal/blob/...
package versitygw

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Options of a server. The zero value is usable.
type Options struct {
	// TLS serves https with a certificate of its own, see Server.CAFile.
	TLS bool
	// Versions keeps what is overwritten or deleted in buckets whose versioning is on.
	Versions bool
}

// Server is a running server.
type Server struct {
	Endpoint  string // URL
	AccessKey string
	SecretKey string
	// CAFile is the certificate to trust, in PEM; "" without TLS.
	CAFile string

	data string
}

// readyWithin is how long a start may take on a busy machine.
const readyWithin = 30 * time.Second

// Start runs a server on a free port of the loopback interface until the test ends.
// Its data lies in memory where the system has /dev/shm.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	dir := scratch(t)
	s := &Server{AccessKey: "testkey", SecretKey: "testsecretkey", data: filepath.Join(dir, "data")}
	iam := filepath.Join(dir, "iam")
	for _, d := range []string{s.data, iam} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	addr := freeAddr(t)
	args := []string{"--access", s.AccessKey, "--secret", s.SecretKey, "--port", addr, "--keep-alive", "--quiet",
		"--health", "/healthz", "--iam-dir", iam}
	s.Endpoint = "http://" + addr
	client := &http.Client{Timeout: time.Second}
	if opts.TLS {
		var keyFile string
		s.CAFile, keyFile = certificate(t, dir)
		args = append(args, "--cert", s.CAFile, "--key", keyFile)
		s.Endpoint = "https://" + addr
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool(t, s.CAFile)}}
	}
	args = append(args, "posix")
	if opts.Versions {
		versions := filepath.Join(dir, "versions")
		if err := os.Mkdir(versions, 0o755); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--versioning-dir", versions)
	}
	s.run(t, append(args, s.data), client)
	return s
}

// File returns where an object lies, for tests that damage it behind the server's
// back. Without a key it is the folder of the bucket.
func (s *Server) File(bucket, key string) string {
	return filepath.Join(s.data, bucket, filepath.FromSlash(key))
}

// MakeBucket makes an empty bucket.
func (s *Server) MakeBucket(t testing.TB, name string) {
	t.Helper()
	// The server keeps a bucket as a folder, and takes any folder for one.
	if err := os.Mkdir(filepath.Join(s.data, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run starts the program, waits until it answers, and stops it when the test ends.
func (s *Server) run(t testing.TB, args []string, client *http.Client) {
	t.Helper()
	var out output
	cmd := exec.Command(binary(t), args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start versitygw: %v", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
		client.CloseIdleConnections()
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(readyWithin)
	for {
		select {
		case err := <-exited:
			exited <- err // for the cleanup
			t.Fatalf("versitygw ended: %v\n%s", err, out.String())
		case <-deadline:
			t.Fatalf("versitygw did not answer within %v\n%s", readyWithin, out.String())
		case <-tick.C:
			resp, err := client.Get(s.Endpoint + "/healthz")
			if err != nil {
				continue
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
	}
}

// binary finds the program or fails the test with how to get it.
func binary(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("FIRN_VERSITYGW"); p != "" {
		return p
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the test")
		}
	}
	p := filepath.Join(dir, ".cache", "bin", "versitygw")
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("versitygw is missing: run `make tools`, or set FIRN_VERSITYGW to the program (%v)", err)
	}
	return p
}

// scratch returns a folder for the server, which syncs nothing anyway: in memory
// if possible.
func scratch(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat("/dev/shm"); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "firn-versitygw-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// freeAddr returns an address that was free a moment ago.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certificate writes a key and a certificate for the loopback interface that signs
// itself.
func certificate(t testing.TB, dir string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "firn test"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(24 * time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", der)
}

func pool(t testing.TB, file string) *x509.CertPool {
	t.Helper()
	b, err := os.ReadFile(file)
	p := x509.NewCertPool()
	if err != nil || !p.AppendCertsFromPEM(b) {
		t.Fatal(fmt.Errorf("read certificate: %w", err))
	}
	return p
}

// output collects what the program prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
