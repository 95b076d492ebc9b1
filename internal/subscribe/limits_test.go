package subscribe_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/subscribe"
	"firn/internal/subscribe/webhook"
	"firn/pkg/stream"
	"firn/tier/hot"
)

func TestConfigurations(t *testing.T) {
	r := newRig(t)
	number := func(n uint64) *uint64 { return &n }
	many := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint("s", i)
		}
		return list
	}
	good := func() subscribe.Config {
		return subscribe.Config{Type: "webhook", Pattern: "a/*", Webhook: &subscribe.WebhookConfig{URL: "http://localhost:1/x"}}
	}
	for name, tt := range map[string]struct {
		id     string
		change func(*subscribe.Config)
		err    error
	}{
		"longest id":          {strings.Repeat("i", 256), nil, nil},
		"id too long":         {strings.Repeat("i", 257), nil, subscribe.ErrInvalid},
		"no id":               {"", nil, subscribe.ErrInvalid},
		"slash in id":         {"a/b", nil, subscribe.ErrInvalid},
		"NUL in id":           {"a\x00", nil, subscribe.ErrInvalid},
		"id not UTF-8":        {"a\xff", nil, subscribe.ErrInvalid},
		"no type":             {"x", func(c *subscribe.Config) { c.Type = "" }, subscribe.ErrInvalid},
		"unknown type":        {"x", func(c *subscribe.Config) { c.Type = "email" }, subscribe.ErrInvalid},
		"nothing to wait for": {"x", func(c *subscribe.Config) { c.Pattern = "" }, subscribe.ErrInvalid},
		"bad pattern":         {"x", func(c *subscribe.Config) { c.Pattern = "a*" }, subscribe.ErrInvalid},
		"longest pattern":     {"pattern", func(c *subscribe.Config) { c.Pattern = strings.Repeat("p", 1024) }, nil},
		"pattern too long":    {"x", func(c *subscribe.Config) { c.Pattern = strings.Repeat("p", 1025) }, subscribe.ErrInvalid},
		"most streams":        {"streams", func(c *subscribe.Config) { c.Streams = many(1000) }, nil},
		"too many streams":    {"x", func(c *subscribe.Config) { c.Streams = many(1001) }, subscribe.ErrInvalid},
		"shortest lease":      {"short", func(c *subscribe.Config) { c.LeaseTTL = number(1000) }, nil},
		"lease too short":     {"x", func(c *subscribe.Config) { c.LeaseTTL = number(999) }, subscribe.ErrInvalid},
		"longest lease":       {"long", func(c *subscribe.Config) { c.LeaseTTL = number(600_000) }, nil},
		"lease too long":      {"x", func(c *subscribe.Config) { c.LeaseTTL = number(600_001) }, subscribe.ErrInvalid},
		"longest description": {"text", func(c *subscribe.Config) { c.Description = strings.Repeat("d", 1024) }, nil},
		"description too long": {
			"x", func(c *subscribe.Config) { c.Description = strings.Repeat("d", 1025) }, subscribe.ErrInvalid},
		"no webhook":     {"x", func(c *subscribe.Config) { c.Webhook = nil }, subscribe.ErrInvalid},
		"no URL":         {"x", func(c *subscribe.Config) { c.Webhook.URL = "" }, subscribe.ErrInvalid},
		"private URL":    {"x", func(c *subscribe.Config) { c.Webhook.URL = "http://10.0.0.1/" }, webhook.ErrTarget},
		"no wake stream": {"x", func(c *subscribe.Config) { c.Type = "pull-wake" }, subscribe.ErrInvalid},
		"bad wake stream": {
			"x", func(c *subscribe.Config) { c.Type, c.WakeStream = "pull-wake", "a//b" }, subscribe.ErrInvalid},
	} {
		c := good()
		if tt.change != nil {
			tt.change(&c)
		}
		_, created, err := r.Put(bg, subscribe.Flat, tt.id, c, root)
		r.is(err, tt.err, name)
		if created != (tt.err == nil) {
			t.Errorf("%s: created %v", name, created)
		}
	}
	for n, want := range map[int]error{subscribe.MaxRoot: nil, subscribe.MaxRoot + 1: subscribe.ErrInvalid} {
		_, _, err := r.Put(bg, subscribe.Flat, fmt.Sprint("root-", n), good(), strings.Repeat("r", n))
		r.is(err, want, fmt.Sprintf("a root of %d bytes", n))
	}
	r.settle()
}

func TestConfirmation(t *testing.T) {
	r := newRig(t)
	lease := uint64(subscribe.DefaultLease)
	base := subscribe.Config{
		Type: "webhook", Pattern: "a/*", Streams: []string{"x", "y"}, Description: "d",
		Webhook: &subscribe.WebhookConfig{URL: "http://localhost:1/x"},
	}
	put := func(change func(*subscribe.Config)) (bool, error) {
		c := base
		change(&c)
		_, created, err := r.Put(bg, subscribe.Flat, "one", c, root)
		return created, err
	}
	if created, err := put(func(*subscribe.Config) {}); err != nil || !created {
		t.Fatalf("create: %v, %v", created, err)
	}
	r.must(r.AddStreams(bg, subscribe.Flat, "one", []string{"z"}))
	r.crash()
	for name, change := range map[string]func(*subscribe.Config){
		"the same":               func(*subscribe.Config) {},
		"the default lease":      func(c *subscribe.Config) { c.LeaseTTL = &lease },
		"another order":          func(c *subscribe.Config) { c.Streams = []string{"/y", "x", "y"} },
		"a wake stream to spare": func(c *subscribe.Config) { c.WakeStream = "w" },
	} {
		if created, err := put(change); err != nil || created {
			t.Errorf("%s: %v, %v", name, created, err)
		}
	}
	other := uint64(5000)
	for name, change := range map[string]func(*subscribe.Config){
		"type":        func(c *subscribe.Config) { c.Type, c.WakeStream = "pull-wake", "w" },
		"pattern":     func(c *subscribe.Config) { c.Pattern = "b/*" },
		"streams":     func(c *subscribe.Config) { c.Streams = []string{"x", "y", "z"} },
		"URL":         func(c *subscribe.Config) { c.Webhook = &subscribe.WebhookConfig{URL: "http://localhost:1/y"} },
		"lease":       func(c *subscribe.Config) { c.LeaseTTL = &other },
		"description": func(c *subscribe.Config) { c.Description = "" },
	} {
		_, err := put(change)
		r.is(err, subscribe.ErrExists, "another "+name)
	}
	if got := r.links("one"); got != "explicit x;explicit y;explicit z;" {
		t.Errorf("links %s", got)
	}
}

func TestNumbersAreBounded(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.Subscriptions, o.Backfill, o.Links = 2, 3, 5 })
	r.put("wakes", "")
	for i := range 3 {
		r.put(fmt.Sprintf("e/%d", i), "")
	}
	r.pull("three", "wakes", "e/*")
	r.put("e/3", "")
	put := func(id, pattern string) error {
		_, _, err := r.Put(bg, subscribe.Flat, id, subscribe.Config{Type: "pull-wake", Pattern: pattern, WakeStream: "wakes"}, root)
		return err
	}
	r.is(put("four", "e/*"), subscribe.ErrLimit, "a pattern that matches too many streams")
	_, err := r.Get(bg, subscribe.Flat, "four", root)
	r.is(err, subscribe.ErrNotFound, "what was refused")
	r.must(put("two", "x"))
	r.is(put("more", "x"), subscribe.ErrLimit, "one subscription too many")
	if err := put("two", "x"); err != nil {
		t.Errorf("confirming at the limit: %v", err)
	}
	r.must(r.Delete(bg, subscribe.Flat, "two"))
	r.must(put("more", "x"))

	r.must(r.AddStreams(bg, subscribe.Flat, "more", []string{"s0", "s1", "s2", "s3", "s4"}))
	r.is(r.AddStreams(bg, subscribe.Flat, "more", []string{"last"}), subscribe.ErrLimit, "one link too many")
	r.must(r.AddStreams(bg, subscribe.Flat, "more", []string{"s0"}))
	if i := r.info("more"); len(i.Streams) != 5 || i.Truncated {
		t.Errorf("lists %d streams, truncated %v", len(i.Streams), i.Truncated)
	}
	r.put("x", "")
	if i := r.info("more"); len(i.Streams) != 5 || !i.Truncated {
		t.Errorf("lists %d streams, truncated %v", len(i.Streams), i.Truncated)
	}
	r.must(r.RemoveStream(bg, subscribe.Flat, "more", "s4"))
	if i := r.info("more"); len(i.Streams) != 5 || i.Truncated {
		t.Errorf("lists %d streams, truncated %v", len(i.Streams), i.Truncated)
	}
}

// The bounds that the manual promises are those of the zero Options.
func TestDefaultBounds(t *testing.T) {
	if d := subscribe.Defaults(); d.Subscriptions != 100_000 || d.Backfill != 100_000 || d.Links != 10_000 || d.Pending != 4096 ||
		d.Requests != 64 || d.RequestsPerHost != 8 {
		t.Errorf("defaults %+v", d)
	}
}

// More streams than are remembered, and than go into a wake, are all woken for. They
// grow while a wake is under way, so that nothing but their number keeps them from being
// remembered.
func TestManyPendingStreams(t *testing.T) {
	const remembered = subscribe.MaxWakeStreams + 5
	r := newRig(t, func(o *subscribe.Options) { o.Pending = remembered })
	v := r.receiver(200, done)
	answer := v.hold(200, done)
	r.hook("one", v.URL, "*", "first")
	r.put("first", "1")
	first := v.next()
	const n = remembered + 10
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_, err := r.hot.Create(bg, hot.Create{Name: named(fmt.Sprint("e", i)), ContentType: "text/plain", Mode: stream.Bytes, Payload: []byte("x")})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if p := r.Pending(subscribe.Flat, "one"); p != remembered {
		t.Errorf("%d streams are remembered, want %d", p, remembered)
	}
	answer()
	seen := map[string]bool{first.Streams[0].Path: true}
	for len(seen) < n+1 {
		d := v.next()
		if len(d.Streams) > subscribe.MaxWakeStreams || len(d.Streams) == 0 {
			t.Fatalf("a wake of %d streams", len(d.Streams))
		}
		for _, s := range d.Streams {
			if seen[s.Path] {
				t.Errorf("%s comes twice", s.Path)
			}
			seen[s.Path] = true
		}
	}
	v.none("when all is acked")
}

// Subscriptions that wait for nothing but growth cost nothing: the engine sleeps.
func TestIdleEngineSleeps(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	for i := range 50 {
		r.pull(fmt.Sprint("s", i), "wakes", fmt.Sprintf("e%d/*", i))
	}
	r.put("e0/a", "1")
	r.settle()
	asked := func(want time.Duration) func() bool {
		return func() bool {
			r.clock.mu.Lock()
			defer r.clock.mu.Unlock()
			return r.clock.asked == want
		}
	}
	r.until("it waits for nothing but its hourly look at the keys", asked(time.Hour))
	c := r.claim("s0")
	r.until("it waits for the end of the lease", asked(time.Second))
	_, err := r.Ack(bg, subscribe.Flat, "s0", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.must(err)
	r.until("it waits for nothing again", asked(time.Hour))
}
