package trials_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/compactor"
	"firn/internal/admin"
	"firn/internal/api"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/verify"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// options are what a trial changes of a server. All have defaults.
type options struct {
	objects blob.Store // below the faults; default in memory
	hot     hot.Options
	cold    cold.Options
	tier    tier.Options
	api     api.Options
	policy  compactor.Policy
	// compacts lets the compactor work by itself, as fast as it can. Otherwise only
	// what the trial asks for is sealed.
	compacts bool
}

// clock is the time of day, and what the trial has added to it.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time      { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) add(d time.Duration) { c.ahead.Add(int64(d)) }

// server is a whole server in this process, with a client of its own. Its data
// survive restarts.
type server struct {
	client
	opts   options
	dir    string
	faults *fault.Store
	clock  clock

	hot       *hot.Store
	cold      *cold.Store
	compactor *compactor.Compactor
	admin     *admin.Server
	api       *api.Server
	metrics   *prometheus.Registry
	http      *http.Server
	cancel    context.CancelFunc
	ended     []chan error // what runs in the background
}

// serve starts a server with a bucket "trial", and stops it at the end of the test.
func serve(t testing.TB, change ...func(*options)) *server {
	t.Helper()
	s := &server{client: newClient(t), dir: t.TempDir()}
	for _, f := range change {
		f(&s.opts)
	}
	if s.opts.objects == nil {
		s.opts.objects = mem.New(mem.Options{})
	}
	s.faults = fault.New(s.opts.objects)
	s.start()
	t.Cleanup(s.stop)
	s.want(201, "PUT", "/ds/trial", "")
	return s
}

func (s *server) start() {
	s.t.Helper()
	check := func(err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
	}
	s.metrics = prometheus.NewRegistry()
	log := logTo(s.t)

	h := s.opts.hot
	h.Logger, h.Registerer, h.Fatal = log, s.metrics, func(msg string) { panic(msg) }
	h.Now = s.clock.now
	setDefault(&h.MemTableBytes, 4<<20)
	setDefault(&h.CacheBytes, 8<<20)
	var err error
	s.hot, err = hot.Open(filepath.Join(s.dir, "hot"), h)
	check(err)
	c := s.opts.cold
	c.StoreID, c.Logger, c.Registerer = s.hot.ID(), log, s.metrics
	s.cold, err = cold.Open(s.faults, c)
	check(err)
	check(s.cold.Claim(context.Background(), cold.ClaimOptions{Fence: s.hot.Fence(), Remember: s.hot.SetFence}))

	o := s.opts.tier
	o.Hot, o.Cold, o.Logger, o.SpoolDir = s.hot, s.cold, log, s.t.TempDir()
	store := tier.New(o)
	policy := s.opts.policy
	setDefault(&policy.MaxAge, 100*365*24*time.Hour)
	encoder, err := segment.NewEncoder(segment.Options{Level: 1, FrameBytes: 64 << 10})
	check(err)
	s.compactor, err = compactor.New(compactor.Options{
		Hot: s.hot, Cold: s.cold, Encoder: encoder, Logger: log, Registerer: s.metrics, Policy: policy,
		Interval: time.Millisecond, SweepInterval: time.Nanosecond,
	})
	check(err)
	s.admin = admin.New(admin.Options{Store: store, Compactor: s.compactor, Gatherer: s.metrics, Logger: log})
	a := s.opts.api
	a.Store, a.Logger, a.Registerer, a.Clock = store, log, s.metrics, s.clock.now
	s.api = api.New(a)
	s.http = api.NewHTTPServer(s.api.Handler(), a)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	s.url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.run(func() error { return s.http.Serve(l) })
	s.run(func() error { return s.hot.Run(ctx) })
	if s.opts.compacts {
		s.run(func() error { return s.compactor.Run(ctx) })
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (s *server) run(f func() error) {
	end := make(chan error, 1)
	s.ended = append(s.ended, end)
	go func() { end <- f() }()
}

// stop ends the server as an operator would: live readers get their closing answer.
func (s *server) stop() {
	if s.hot == nil {
		return
	}
	s.api.Drain()
	s.sender.CloseIdleConnections()
	grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.http.Shutdown(grace) != nil {
		s.http.Close()
	}
	s.api.Shutdown(grace)
	s.cancel()
	for _, end := range s.ended {
		if err := <-end; err != nil && err != http.ErrServerClosed {
			s.t.Error(err)
		}
	}
	s.ended = nil
	s.verify()
	s.cold.Close()
	if err := s.hot.Close(); err != nil {
		s.t.Error(err)
	}
	s.hot = nil
}

// verify looks at the structure of everything: whatever a trial does, it must be whole.
func (s *server) verify() {
	r, err := verify.Run(context.Background(), verify.RunOptions{
		State:  func() (verify.Reader, func()) { v := s.hot.View(); return v.Reader(), v.Close },
		Remote: s.opts.objects,
	})
	if err != nil {
		s.t.Error(err)
	} else if !r.Clean() {
		s.t.Errorf("verify: %+v", r)
	}
}

func (s *server) restart() {
	s.t.Helper()
	s.stop()
	s.start()
}

// seal moves all bytes of streams to the cold tier and drops them from the hot one.
func (s *server) seal(paths ...string) {
	s.t.Helper()
	for _, p := range paths {
		s.sealOnly(p)
		s.operate(200, p, "evict")
	}
}

// sealOnly writes all bytes of a stream to the cold tier; the hot copies stay.
func (s *server) sealOnly(path string) {
	s.t.Helper()
	s.operate(200, path, "seal")
}

func (s *server) operate(status int, path, step string) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.admin.ServeHTTP(w, httptest.NewRequest("POST", "/admin/streams"+strings.TrimPrefix(path, "/ds")+"/"+step, nil))
	if w.Code != status {
		s.t.Fatalf("%s %s: got %d %s", step, path, w.Code, w.Body)
	}
}

// collect removes what nothing needs: it runs every step of the compactor often enough,
// after all that history and graces are kept for.
func (s *server) collect() {
	s.t.Helper()
	for range 3 {
		s.clock.add(8 * 24 * time.Hour)
		for more := true; more; {
			var err error
			if more, err = s.compactor.Pass(context.Background()); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// incarnation returns what a stream is called inside.
func (s *server) incarnation(path string) stream.ID {
	s.t.Helper()
	bucket, id, _ := strings.Cut(strings.TrimPrefix(path, "/ds/"), "/")
	v := s.hot.View()
	defer v.Close()
	rec, err := v.Stream(stream.Name{Bucket: bucket, ID: id})
	if err != nil {
		s.t.Fatal(err)
	}
	return rec.ID
}

// segments lists the objects of segments.
func (s *server) segments() []string { return s.keys(".zst") }

func (s *server) keys(part string) []string {
	s.t.Helper()
	var keys []string
	err := s.opts.objects.List(context.Background(), "", "", func(i blob.Info) error {
		if strings.Contains(i.Key, part) {
			keys = append(keys, i.Key)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

// metric returns the sum of a metric's samples, 0 if there are none yet; of a
// histogram, how often it was observed.
func (s *server) metric(name string) (sum float64) {
	s.t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}
