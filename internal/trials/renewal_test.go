package trials_test

import (
	"context"
	"testing"
	"time"

	"firn/internal/api"
)

// TestWhatRenewsALife uses a stream with a TTL of a minute by each kind of request, 50 s
// after the last use. What renews it lets it live 50 s more; what does not lets it end.
func TestWhatRenewsALife(t *testing.T) {
	const path, text = "/ds/trial/s", "Content-Type: text/plain"
	for name, tt := range map[string]struct {
		use    func(s *server)
		renews bool
	}{
		"append":            {func(s *server) { s.append(path, "text/plain", "x") }, true},
		"read":              {func(s *server) { s.want(200, "GET", path, "") }, true},
		"read now":          {func(s *server) { s.want(200, "GET", path+"?offset=now", "") }, true},
		"unchanged read":    {func(s *server) { s.want(304, "GET", path, "", "If-None-Match: *") }, true},
		"long-poll":         {func(s *server) { s.want(200, "GET", path+"?offset=-1&live=long-poll", "") }, true},
		"empty long-poll":   {func(s *server) { s.want(204, "GET", path+"?offset=now&live=long-poll", "") }, true},
		"events":            {func(s *server) { e := s.subscribe(path + "?offset=-1&live=sse"); e.must(); e.leave() }, true},
		"bootstrap":         {func(s *server) { s.want(200, "GET", path+"/bootstrap", "") }, true},
		"close":             {func(s *server) { s.want(204, "POST", path, "", "Stream-Closed: true") }, true},
		"close, producer":   {func(s *server) { s.want(204, "POST", path, "", append(by("p", 0, 0), "Stream-Closed: true")...) }, true},
		"head":              {func(s *server) { s.want(200, "HEAD", path, "") }, false},
		"create again":      {func(s *server) { s.want(200, "PUT", path, "", text, "Stream-TTL: 60") }, false},
		"refused append":    {func(s *server) { s.want(409, "POST", path, "x", "Content-Type: text/html") }, false},
		"malformed read":    {func(s *server) { s.want(400, "GET", path+"?offset=x", "") }, false},
		"listing":           {func(s *server) { s.list("/ds/trial/streams") }, false},
		"fork":              {func(s *server) { s.want(201, "PUT", "/ds/trial/f", "", "Stream-Forked-From: "+path) }, false},
		"use of its fork":   {func(s *server) { s.fork(path); s.want(200, "GET", "/ds/trial/f", "") }, false},
		"append to a fork":  {func(s *server) { s.fork(path); s.append("/ds/trial/f", "text/plain", "x") }, false},
		"preflight":         {func(s *server) { s.want(204, "OPTIONS", path, "") }, false},
		"refused long-poll": {func(s *server) { s.want(400, "GET", path+"?live=long-poll", "") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(o *options) { o.api = api.Options{LongPollTimeout: time.Millisecond} })
			s.create(path, "text/plain", "x", "Stream-TTL: 60")
			s.clock.add(50 * time.Second)
			tt.use(s)
			s.clock.add(50 * time.Second)
			a := s.do("HEAD", path, "")
			if alive := a.status == 200; alive != tt.renews {
				t.Errorf("50 s after it: %d", a.status)
			}
			if tt.renews && a.header.Get("Stream-TTL") != "60" {
				t.Errorf("TTL is %q", a.header.Get("Stream-TTL"))
			}
		})
	}
}

// fork makes a fork that does not count as a use of anything.
func (s *server) fork(source string) {
	s.t.Helper()
	s.want(201, "PUT", "/ds/trial/f", "", "Stream-Forked-From: "+source, "Stream-TTL: 3600")
}

// TestNothingRenewsADate: a stream with Stream-Expires-At ends then, however it is used,
// and takes its live readers with it.
func TestNothingRenewsADate(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{LongPollTimeout: time.Minute} })
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "x", "Stream-Expires-At: "+s.clock.now().Add(time.Minute).UTC().Format(time.RFC3339Nano))
	e := s.subscribe(path + "?live=sse&offset=" + tail)
	e.must()
	ended := make(chan answer, 1)
	go func() {
		a, _ := s.try("GET", path+"?live=long-poll&offset="+tail, "")
		ended <- a
	}()
	eventually(t, "both wait", func() bool { return s.metric("firn_http_live_readers") == 2 })
	s.clock.add(50 * time.Second)
	s.want(200, "GET", path, "")
	s.want(200, "HEAD", path, "")
	s.clock.add(11 * time.Second)
	s.want(404, "GET", path, "")
	e.ends()
	if a := <-ended; a.status != 404 {
		t.Errorf("long-poll: %d", a.status)
	}
	s.create(path, "text/plain", "new")
	s.holds(path, "new")
}

// TestLiveReadersKeepAStream: a TTL does not run while somebody reads live, and runs
// from the moment that the last reader leaves.
func TestLiveReadersKeepAStream(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{LongPollTimeout: time.Hour} })
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "x", "Stream-TTL: 60")
	e := s.subscribe(path + "?live=sse&offset=" + tail)
	e.must()
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		if res, err := s.begin(ctx, "GET", path+"?live=long-poll&offset="+tail, ""); err == nil {
			res.Body.Close()
		}
	}()
	readers := func(n float64) func() bool {
		return func() bool { return s.metric("firn_http_live_readers") == n }
	}
	eventually(t, "both wait", readers(2))
	s.clock.add(10 * time.Minute)
	s.want(200, "HEAD", path, "")
	e.leave()
	eventually(t, "one has left", readers(1))
	s.clock.add(10 * time.Minute)
	s.want(200, "HEAD", path, "")
	leave()
	eventually(t, "the other, too", readers(0))
	s.clock.add(59 * time.Second)
	s.want(200, "HEAD", path, "")
	s.clock.add(2 * time.Second)
	s.want(404, "HEAD", path, "")
}
