package trials_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/internal/api"
)

func TestLive(t *testing.T) {
	t.Run("LV-3be", lastMessageBeforeTheClose)
	t.Run("LV-c0d", appendBesideTheWait)
	t.Run("LV-6d9", textForgesNoEvents)
	t.Run("LV-22e", proxyThatBuffers)
	t.Run("LV-35d", slowReader)
	t.Run("LV-cbb", proxyThatDropsQuietConnections)
	t.Run("LV-f0d", restartBesideLongPolls)
	t.Run("LV-27d", appendsBesideManyReaders)
	t.Run("LV-9eb", manySubscribers)
	t.Run("LV-ee0", deletionEndsWaiting)
	t.Run("LV-2b8", charactersOverTwoAppends)
}

// lastMessageBeforeTheClose closes with a last message while readers connect or wait.
func lastMessageBeforeTheClose(t *testing.T) {
	s := serve(t)
	for round := range scaled(10, 30) {
		for _, variant := range []string{"plain", "producer", "fork"} {
			path := fmt.Sprintf("/ds/trial/%s-%d", variant, round)
			tail := s.create(path, "text/plain", "first")
			header := []string{"Content-Type: text/plain", "Stream-Closed: true"}
			switch variant {
			case "producer":
				header = append(header, by("p", 0, 0)...)
			case "fork":
				s.want(201, "PUT", path+"f", "", "Stream-Forked-From: "+path)
				path += "f"
			}
			var g errgroup.Group
			connected := make(chan struct{})
			g.Go(func() error {
				e, err := s.open(path + "?live=sse&offset=" + tail)
				close(connected)
				if err != nil {
					return err
				}
				defer e.leave()
				data, c, err := e.page()
				if err == nil && data == "" && !c.StreamClosed {
					data, c, err = e.page()
				}
				if err != nil || data != "final" || !c.StreamClosed || position(c.StreamNextOffset) != 10 {
					return fmt.Errorf("%s: SSE got %q, %+v, %v", path, data, c, err)
				}
				if _, err := e.next(); err != io.EOF {
					return fmt.Errorf("%s: SSE goes on: %v", path, err)
				}
				return nil
			})
			g.Go(func() error {
				a, err := s.try("GET", path+"?live=long-poll&offset="+tail, "")
				if err != nil || a.status != 200 || a.body != "final" || a.header.Get("Stream-Closed") != "true" {
					return fmt.Errorf("%s: long-poll got %d %q, %v", path, a.status, a.body, err)
				}
				return nil
			})
			if round%2 == 0 {
				<-connected
			}
			if a := s.do("POST", path, "final", header...); a.status/100 != 2 {
				t.Fatalf("%s: %d %s", path, a.status, a.body)
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// appendBesideTheWait races a reader that begins to wait with an append or a close, 200
// times (5000 with -full). A reader that misses it waits for a minute.
func appendBesideTheWait(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{LongPollTimeout: time.Minute} })
	for round := range scaled(200, 5000) {
		path := fmt.Sprintf("/ds/trial/s%d", round)
		tail := s.create(path, "text/plain", "x")
		closes := round%3 == 2
		var g errgroup.Group
		g.Go(func() error {
			if round%2 == 0 {
				a, err := s.try("GET", path+"?live=long-poll&offset="+tail, "")
				if err == nil && (a.body != "y" && !closes || a.header.Get("Stream-Closed") != "true" && closes) {
					err = fmt.Errorf("round %d: got %d %q", round, a.status, a.body)
				}
				return err
			}
			e, err := s.open(path + "?live=sse&offset=" + tail)
			if err != nil {
				return err
			}
			defer e.leave()
			for {
				data, c, err := e.page()
				if err != nil || data == "y" || c.StreamClosed {
					return err
				}
			}
		})
		if closes {
			s.want(204, "POST", path, "", "Stream-Closed: true")
		} else {
			s.append(path, "text/plain", "y")
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// textForgesNoEvents is what internal/api's FuzzTextEvents shows for the encoder, over a
// connection.
func textForgesNoEvents(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "")
	texts := []string{"a\r\n\r\nevent: control\ndata: {\"streamNextOffset\":\"x\"}\n\n", "\rdata: z", " leading", "\u0085", "\u2028", "a\r", "\nb", "end"}
	for _, text := range texts {
		tail = s.append(path, "text/plain", text)
	}
	want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.Join(texts, ""))
	if got, c := s.subscribe(path + "?live=sse&offset=-1").must(); got != want || c.StreamNextOffset != tail {
		t.Errorf("at once: %q, %+v", got, c)
	}
	s.create("/ds/trial/l", "text/plain", "")
	e := s.subscribe("/ds/trial/l?live=sse&offset=-1")
	e.must()
	got := ""
	for i, text := range texts {
		tail := s.append("/ds/trial/l", "text/plain", text)
		end := position(tail)
		if strings.HasSuffix(text, "\r") {
			end-- // an LF may follow, and does
		}
		data, c := e.must()
		if got += data; position(c.StreamNextOffset) != end {
			t.Errorf("append %d: event up to %s of %s", i, c.StreamNextOffset, tail)
		}
	}
	if got != want {
		t.Errorf("live: %q, want %q", got, want)
	}
}

// proxyThatBuffers stands for nginx with its default settings: it collects what comes
// before it sends, unless the answer forbids it. That a real one does too was tried by
// hand.
func proxyThatBuffers(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "")
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			if r.ContentLength >= 0 || r.Header.Get("Content-Encoding") != "" || !strings.Contains(r.Header.Get("Cache-Control"), "no-transform") {
				return fmt.Errorf("an answer that can be transformed: %v", r.Header)
			}
			if r.Header.Get("X-Accel-Buffering") != "no" {
				all, err := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(all))
				return err
			}
			return nil
		},
		FlushInterval: -1,
	}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go proxy.Serve(l)
	t.Cleanup(func() { proxy.Close() })
	through := newClient(t)
	through.url = "http://" + l.Addr().String()
	e := through.subscribe(path + "?live=sse&offset=" + tail)
	e.must()
	for i := range 10 {
		s.append(path, "text/plain", fmt.Sprintf("twenty bytes, no %03d", i))
		if data, _ := e.must(); !strings.HasSuffix(data, fmt.Sprint(i)) {
			t.Errorf("got %q", data)
		}
	}
}

// slowReader takes twice as long for an answer as a client may stand still (300 MiB at
// 1 MiB/s is the reported figure). Silence between events is in internal/api's
// TestSilenceIsNoStall, a client that takes nothing in TestStalledClientIsGivenUp.
func slowReader(t *testing.T) {
	t.Parallel()
	const stall, pieces, size = 1500 * time.Millisecond, 24, 512 << 10
	s := serve(t, func(o *options) { o.api = api.Options{WriteStallTimeout: stall}; o.tier.ReadBytes = 16 << 20 })
	const path = "/ds/trial/s"
	want := strings.Repeat("0123456789abcdef", pieces*size/16)
	s.create(path, "application/octet-stream", want)
	var g errgroup.Group
	for proto, p := range map[string]http.Protocols{"HTTP/1.1": h1(), "HTTP/2": h2()} {
		tr := &http.Transport{Protocols: &p, ReadBufferSize: 4 << 10}
		t.Cleanup(tr.CloseIdleConnections)
		c := s.client
		c.sender = &http.Client{Transport: tr}
		g.Go(func() error {
			res, err := c.begin(context.Background(), "GET", path, "")
			if err != nil {
				return err
			}
			defer res.Body.Close()
			var got bytes.Buffer
			pace := time.NewTicker(2 * stall / pieces)
			defer pace.Stop()
			for range pieces {
				<-pace.C
				if _, err := io.CopyN(&got, res.Body, size); err != nil {
					return fmt.Errorf("%s: after %d bytes: %w", proto, got.Len(), err)
				}
			}
			same(t, proto, got.String(), want)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

func h1() (p http.Protocols) { p.SetHTTP1(true); return p }
func h2() (p http.Protocols) { p.SetUnencryptedHTTP2(true); return p }

// proxyThatDropsQuietConnections closes after a second without bytes; the heartbeat
// comes as often, in relation, as the default does within 60 s.
func proxyThatDropsQuietConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, func(o *options) { o.api = api.Options{SSEHeartbeat: 100 * time.Millisecond} })
	tail := s.create("/ds/trial/s", "text/plain", "")
	through := newClient(t)
	through.url = "http://" + dropIdle(t, strings.TrimPrefix(s.url, "http://"), time.Second)
	var g errgroup.Group
	for range 20 {
		g.Go(func() error {
			e, err := through.open("/ds/trial/s?live=sse&offset=" + tail)
			if err != nil {
				return err
			}
			defer e.leave()
			if _, _, err = e.page(); err == nil {
				_, _, err = e.page()
			}
			if err == nil && e.comments < 10 {
				err = fmt.Errorf("%d heartbeats in 2 s", e.comments)
			}
			return err
		})
	}
	<-time.After(2 * time.Second)
	s.append("/ds/trial/s", "text/plain", "x")
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// dropIdle forwards connections, and closes those on which nothing comes for a while.
func dropIdle(t *testing.T, to string, idle time.Duration) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { io.Copy(out, in); out.Close() }()
			go func() {
				defer in.Close()
				defer out.Close()
				buf := make([]byte, 4096)
				for {
					out.SetReadDeadline(time.Now().Add(idle))
					n, err := out.Read(buf)
					if err != nil {
						return
					}
					in.Write(buf[:n])
				}
			}()
		}
	}()
	return l.Addr().String()
}

func restartBesideLongPolls(t *testing.T) {
	s := serve(t)
	tail := s.create("/ds/trial/s", "text/plain", "x")
	for range 3 {
		var g errgroup.Group
		for range 30 {
			g.Go(func() error {
				a, err := s.try("GET", "/ds/trial/s?live=long-poll&offset="+tail, "")
				switch {
				case err != nil:
					return err
				case a.status == 204 && a.next() == tail && a.upToDate() && a.header.Get("Stream-Cursor") != "":
				case a.status == 503 && a.header.Get("Retry-After") != "":
				default:
					return fmt.Errorf("got %d, %v", a.status, a.header)
				}
				return nil
			})
		}
		eventually(t, "all are waiting", func() bool { return s.metric("firn_http_live_readers") == 30 })
		s.stop()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		s.start()
	}
}

// appendsBesideManyReaders has what internal/api's TestManyReadersOnOneConnection leaves:
// appends on the very connection that the readers share.
func appendsBesideManyReaders(t *testing.T) {
	s := serve(t)
	tail := s.create("/ds/trial/s", "text/plain", "x")
	p := h2()
	tr := &http.Transport{Protocols: &p, HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true}}
	t.Cleanup(tr.CloseIdleConnections)
	var dials atomic.Int64
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	c := s.client
	c.sender = &http.Client{Transport: tr}
	var all []*events
	for range 250 {
		e := c.subscribe("/ds/trial/s?live=sse&offset=" + tail)
		e.must()
		all = append(all, e)
	}
	c.append("/ds/trial/s", "text/plain", "y")
	for _, e := range all {
		if data, _ := e.must(); data != "y" {
			t.Fatalf("got %q", data)
		}
	}
	if dials.Load() != 1 {
		t.Errorf("%d connections", dials.Load())
	}
}

// manySubscribers opens 300 event streams (10,000 with -full, for which 20,000
// descriptors are not enough) on one stream, and as many on streams of their own.
func manySubscribers(t *testing.T) {
	p := spawn(t, "--live.sse-max-age", "1h")
	n := scaled(300, 10_000)
	tail := p.create("/ds/trial/shared", "text/plain", "x")
	var own []string
	for i := range n {
		own = append(own, p.create(fmt.Sprintf("/ds/trial/own%d", i), "text/plain", "x"))
	}
	p.sender.CloseIdleConnections()
	quiet := p.metric("go_goroutines")
	memory := p.metric("process_resident_memory_bytes")
	var all []*events
	for i := range n {
		for _, path := range []string{fmt.Sprintf("/ds/trial/own%d?live=sse&offset=%s", i, own[i]), "/ds/trial/shared?live=sse&offset=" + tail} {
			e := p.subscribe(path)
			e.must()
			all = append(all, e)
		}
	}
	each := (p.metric("process_resident_memory_bytes") - memory) / float64(len(all))
	t.Logf("%.1f KiB a reader", each/1024)
	if each > 48<<10 {
		t.Errorf("%.0f bytes a reader", each)
	}
	began := time.Now()
	p.append("/ds/trial/shared", "text/plain", "to all")
	for i := 1; i < len(all); i += 2 {
		if data, _ := all[i].must(); data != "to all" {
			t.Fatalf("reader %d got %q", i, data)
		}
	}
	t.Logf("reached all after %v", time.Since(began))
	for _, e := range all {
		e.leave()
	}
	p.sender.CloseIdleConnections()
	eventually(t, "goroutines return", func() bool { return p.metric("go_goroutines") <= quiet+5 })
	if got := p.metric("firn_http_live_readers"); got != 0 {
		t.Errorf("%v readers are counted", got)
	}
}

// deletionEndsWaiting has what internal/api's TestDeletionEndsLiveReaders leaves: a
// successor that is there, and written to, at once.
func deletionEndsWaiting(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{LongPollTimeout: time.Minute} })
	for range scaled(10, 100) {
		tail := s.create("/ds/trial/s", "text/plain", "old")
		var g errgroup.Group
		g.Go(func() error {
			a, err := s.try("GET", "/ds/trial/s?live=long-poll&offset="+tail, "")
			if err == nil && (a.status != 404 || strings.Contains(a.body, "NEW")) {
				err = fmt.Errorf("long-poll: %d %q", a.status, a.body)
			}
			return err
		})
		e := s.subscribe("/ds/trial/s?live=sse&offset=" + tail)
		e.must()
		eventually(t, "both wait", func() bool { return s.metric("firn_http_live_readers") == 2 })
		began := time.Now()
		s.want(204, "DELETE", "/ds/trial/s", "")
		s.create("/ds/trial/s", "text/plain", "NEW")
		s.append("/ds/trial/s", "text/plain", "NEW")
		e.ends()
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("waiting went on for %v", took)
		}
		s.want(204, "DELETE", "/ds/trial/s", "")
	}
}

// charactersOverTwoAppends has what internal/api's TestEventsKeepCharactersWhole leaves:
// what a catch-up read of it gives, and bytes that are no character at all.
func charactersOverTwoAppends(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "a\xc3")
	live := s.subscribe(path + "?live=sse&offset=-1")
	first, c := live.must()
	s.append(path, "text/plain", "\xa9b")
	second, _ := live.must()
	if first+second != "a\u00e9b" {
		t.Errorf("live: %q, %q", first, second)
	}
	if got := s.read(path, c.StreamNextOffset); got != "\xc3\xa9b" {
		t.Errorf("from the control event's offset: %q", got)
	}
	tail := s.append(path, "text/plain", "\xff")
	s.holds(path, "a\xc3\xa9b\xff")
	if data, c := s.subscribe(path + "?live=sse&offset=-1").must(); data != "a\u00e9b\xff" || c.StreamNextOffset != tail {
		t.Errorf("from the beginning: %q, %+v", data, c)
	}
}
