package hot_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// clock is one that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// lived is a store with a clock on a disk that can crash.
func lived(t *testing.T, fs vfs.FS, c *clock) *hot.Store {
	t.Helper()
	s, err := hot.Open("hot", hot.Options{FS: fs, MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Now: c.Now, Fatal: func(m string) { panic(m) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func createFor(t *testing.T, s *hot.Store, id string, l stream.Lifetime) *hot.Record {
	t.Helper()
	r, err := s.Create(context.Background(), hot.Create{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: id}, ContentType: "text/plain", Mode: stream.Bytes, Lifetime: l,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Record
}

func current(t *testing.T, s *hot.Store, id stream.ID) *hot.Record {
	t.Helper()
	v := s.View()
	defer v.Close()
	rec, err := v.Incarnation(id)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// A stream is used after any pause; the store crashes right then. What is left of
// the stream's life is at least the TTL from that use on, and at most the lead more.
func TestCrashNeverShortensALife(t *testing.T) {
	for _, ttl := range []uint64{1, 8, 60, 3600} {
		whole := time.Duration(ttl) * time.Second
		lead := max(whole/8, time.Second)
		for eighths := range time.Duration(8) {
			fs, c := vfs.NewCrashableMem(), newClock()
			s := lived(t, fs, c)
			rec := createFor(t, s, "a", stream.Lifetime{Sliding: true, TTL: ttl})
			for range 3 {
				c.advance(whole * eighths / 8)
				rec = current(t, s, rec.ID)
				if s.Expired(rec) {
					t.Fatalf("ttl %d: expired %d eighths after a use", ttl, eighths)
				}
				s.Renew(rec)
				used := c.Now()
				after := &clock{now: used.Add(whole - time.Millisecond)}

				again := lived(t, fs.CrashClone(vfs.CrashCloneCfg{}), after)
				if left := current(t, again, rec.ID); again.Expired(left) {
					t.Fatalf("ttl %d: a crash after a use at %d eighths shortens the life", ttl, eighths)
				}
				after.advance(lead + 2*time.Millisecond)
				if left := current(t, again, rec.ID); !again.Expired(left) {
					t.Fatalf("ttl %d: a crash after a use at %d eighths lengthens the life by more than the lead", ttl, eighths)
				}
				if err := again.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestLifeEndsToTheMillisecond(t *testing.T) {
	c := newClock()
	s := lived(t, vfs.NewMem(), c)
	defer s.Close()
	sliding := createFor(t, s, "sliding", stream.Lifetime{Sliding: true, TTL: 10})
	fixed := createFor(t, s, "fixed", stream.Lifetime{At: c.Now().Add(10 * time.Second)})
	s.Renew(sliding) // known in memory, so to the millisecond
	c.advance(10*time.Second - time.Millisecond)
	for _, r := range []*hot.Record{sliding, fixed} {
		if s.Expired(r) {
			t.Errorf("%s is over a millisecond early", r.Name)
		}
	}
	c.advance(time.Millisecond)
	for _, r := range []*hot.Record{sliding, fixed} {
		if !s.Expired(r) {
			t.Errorf("%s is not over", r.Name)
		}
	}
	for name, l := range map[string]stream.Lifetime{
		"ttl of 0": {Sliding: true}, "now": {At: c.Now()}, "before 1970": {At: time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if r := createFor(t, s, name, l); !s.Expired(r) {
			t.Errorf("%s: not over at once", name)
		}
	}
	if err := s.ExpireDue(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := s.Streams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
}

func TestExpireSparesWhatHasNoLifetime(t *testing.T) {
	s := lived(t, vfs.NewMem(), newClock())
	defer s.Close()
	rec := createFor(t, s, "a", stream.Lifetime{})
	if err := s.Expire(context.Background(), rec.ID); err != nil {
		t.Fatal(err)
	}
	current(t, s, rec.ID)
}

func TestReadersHoldASlidingLife(t *testing.T) {
	c := newClock()
	s := lived(t, vfs.NewMem(), c)
	defer s.Close()
	rec := createFor(t, s, "a", stream.Lifetime{Sliding: true, TTL: 5})
	first, second := s.Hold(rec), s.Hold(rec)
	c.advance(time.Hour)
	first()
	if s.Expired(rec) {
		t.Fatal("expired while a reader is connected")
	}
	second()
	c.advance(5*time.Second - time.Millisecond)
	if s.Expired(rec) {
		t.Fatal("the last reader's leaving is no use")
	}
	c.advance(time.Millisecond)
	if !s.Expired(rec) {
		t.Fatal("not expired a TTL after the last reader left")
	}
	fixed := createFor(t, s, "b", stream.Lifetime{At: c.Now().Add(time.Second)})
	defer s.Hold(fixed)()
	c.advance(time.Second)
	if !s.Expired(fixed) {
		t.Fatal("a reader holds a fixed lifetime")
	}
}

// A stream that is deleted while it is read is forgotten when its readers are gone.
func TestUsesOfDeletedStreamsAreForgotten(t *testing.T) {
	c, ctx := newClock(), context.Background()
	s := lived(t, vfs.NewMem(), c)
	defer s.Close()
	rec := createFor(t, s, "a", stream.Lifetime{Sliding: true, TTL: 60})
	release := s.Hold(rec)
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	release()
	c.advance(time.Minute)
	if err := s.ExpireDue(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.Uses(); n != 0 {
		t.Fatalf("the uses of %d streams are kept", n)
	}
}

// One step of the expiry, which a listing waits for, looks at a bounded number of
// streams, and at none twice because it was only written to.
func TestExpiryLooksAtAPage(t *testing.T) {
	c, ctx := newClock(), context.Background()
	s := lived(t, vfs.NewMem(), c)
	defer s.Close()
	const more = hot.ExpiryPage + 1
	recs := make([]*hot.Record, more)
	var g sync.WaitGroup
	for i := range recs {
		g.Go(func() { recs[i] = createFor(t, s, strconv.Itoa(i), stream.Lifetime{Sliding: true, TTL: 600}) })
	}
	g.Wait()
	for _, r := range recs {
		s.Renew(r)
	}
	written := recs[0]
	c.advance(9 * time.Minute)
	if _, err := s.Append(ctx, &hot.Append{ID: written.ID, ContentType: "text/plain", Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if n := s.Looked(); n != 0 {
		t.Fatalf("%d streams that are in use are looked at", n)
	}
	c.advance(time.Minute)
	if n := s.Looked(); n != hot.ExpiryPage {
		t.Fatalf("one step looks at %d streams", n)
	}
	for range 2 {
		if err := s.ExpireDue(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Looked(); n != 0 || s.Streams() != 1 {
		t.Fatalf("%d streams are looked at for ever, %d are left", n, s.Streams())
	}
	current(t, s, written.ID)
}

// Appends renew a lifetime, and an expired name is free at once.
func TestExpiredNameIsFree(t *testing.T) {
	c, ctx := newClock(), context.Background()
	s := lived(t, vfs.NewMem(), c)
	defer s.Close()
	rec := createFor(t, s, "a", stream.Lifetime{Sliding: true, TTL: 8})
	for range 5 {
		c.advance(7 * time.Second)
		if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	c.advance(10 * time.Second)
	_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
	if !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("append to an expired stream: %v", err)
	}
	if again := createFor(t, s, "a", stream.Lifetime{}); again.ID == rec.ID || again.Tail != 0 {
		t.Fatalf("got %+v", again)
	}
}
