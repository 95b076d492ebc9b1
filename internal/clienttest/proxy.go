package clienttest

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Fate is what becomes of a piece of an answer.
type Fate uint8

const (
	// Pass lets it through.
	Pass Fate = iota
	// Lose drops it, and the connection with it.
	Lose
	// Tear lets a half of it through, then drops the connection.
	Tear
)

// Proxy stands between clients and a server, byte for byte, and fails as networks do.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex
	fate  func() Fate
	conns map[net.Conn]bool
	ended bool
}

// NewProxy opens a proxy of the server whose root is given, that ends with the test. It
// passes everything until it is told otherwise.
func NewProxy(t testing.TB, root string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := strings.TrimPrefix(root, "http://")
	p := &Proxy{target: target, listener: l, conns: make(map[net.Conn]bool), fate: func() Fate { return Pass }}
	p.running.Add(1)
	go p.accept()
	t.Cleanup(func() {
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		l.Close()
		p.Cut()
		p.running.Wait()
	})
	return p
}

// URL is the root of the server behind the proxy.
func (p *Proxy) URL() string { return "http://" + p.listener.Addr().String() }

// Fail asks f for the fate of each piece of an answer from now on, one at a time.
func (p *Proxy) Fail(f func() Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fate = f
}

// Cut drops all connections that there are.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *Proxy) accept() {
	defer p.running.Done()
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Add(1)
		go p.serve(c)
	}
}

func (p *Proxy) serve(client net.Conn) {
	defer p.running.Done()
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.enter(client, server) {
		return
	}
	defer p.leave(client, server)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		io.Copy(server, client)
		server.Close()
	}()
	p.answer(client, server)
	client.Close()
	<-sent
}

func (p *Proxy) enter(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.ended
}

func (p *Proxy) leave(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}

// answer passes on what the server says, until it meets its fate.
func (p *Proxy) answer(client, server net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		fate := p.fate()
		p.mu.Unlock()
		switch fate {
		case Lose:
			return
		case Tear:
			client.Write(buf[:n/2])
			return
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
