package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/compactor"
	"firn/internal/admin"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/verify"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// rig is an admin server over real parts, with objects in memory.
type rig struct {
	t         *testing.T
	blobs     *fault.Store
	hot       *hot.Store
	store     *tier.Store
	compactor *compactor.Compactor
	admin     *admin.Server
}

func newRig(t *testing.T, hotOptions hot.Options, adminOptions admin.Options) *rig {
	t.Helper()
	r := &rig{t: t, blobs: fault.New(mem.New(mem.Options{}))}
	hotOptions.MemTableBytes = 1 << 20
	var err error
	if r.hot, err = hot.Open(t.TempDir(), hotOptions); err != nil {
		t.Fatal(err)
	}
	c, err := cold.Open(r.blobs, cold.Options{StoreID: r.hot.ID()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := r.hot.Close(); err != nil {
			t.Error(err)
		}
	})
	r.store = tier.New(tier.Options{Hot: r.hot, Cold: c, SpoolDir: t.TempDir()})
	if r.compactor, err = compactor.New(compactor.Options{Hot: r.hot, Cold: c, Interval: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	adminOptions.Store, adminOptions.Compactor, adminOptions.Gatherer = r.store, r.compactor, prometheus.NewRegistry()
	adminOptions.Verify = verify.RunOptions{InUse: true, Remote: r.blobs, State: func() (verify.Reader, func()) {
		v := r.hot.View()
		return v.Reader(), v.Close
	}}
	r.admin = admin.New(adminOptions)
	return r
}

// create makes a stream of the default bucket.
func (r *rig) create(id, body string) {
	r.t.Helper()
	_, _, err := r.store.Create(r.t.Context(), tier.CreateRequest{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: id}, ContentType: "application/json", Body: []byte(body),
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) do(method, path string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.admin.ServeHTTP(w, req)
	return w
}

// refused checks that an answer is a problem with a code.
func (r *rig) refused(w *httptest.ResponseRecorder, status int, code string) {
	r.t.Helper()
	var p struct{ Code, Detail string }
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
		r.t.Errorf("not a problem: %v %s", err, w.Body)
	}
	if w.Code != status || p.Code != code || p.Detail == "" {
		r.t.Errorf("got %d %+v, want %d %s", w.Code, p, status, code)
	}
}

// get decodes an answer of success.
func get[T any](r *rig, method, path string) (v T) {
	r.t.Helper()
	w := r.do(method, path)
	if err := json.Unmarshal(w.Body.Bytes(), &v); w.Code != http.StatusOK || err != nil {
		r.t.Fatalf("%s %s: %d %s, %v", method, path, w.Code, w.Body, err)
	}
	return v
}

func TestTokenGuardsAllButHealth(t *testing.T) {
	r := newRig(t, hot.Options{}, admin.Options{Token: "s3cret"})
	r.create("orders", "[1]")
	for _, route := range []string{
		"GET /metrics", "GET /admin/buckets", "GET /admin/streams/default/orders", "POST /admin/streams/default/orders/seal",
		"POST /admin/streams/default/orders/evict", "POST /admin/verify", "GET /debug/pprof/", "GET /debug/pprof/cmdline", "GET /debug/pprof/goroutine",
	} {
		method, path, _ := strings.Cut(route, " ")
		for _, header := range []string{
			"Accept: */*", "Authorization: Bearer ", "Authorization: Bearer s3cre", "Authorization: Bearer s3cret2",
			"Authorization: Bearer S3CRET", "Authorization: Basic s3cret",
		} {
			w := r.do(method, path, header)
			r.refused(w, http.StatusUnauthorized, "unauthorized")
			if w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q does not say what it wants", route, header)
			}
		}
		if w := r.do(method, path, "Authorization: Bearer s3cret"); w.Code != http.StatusOK {
			t.Errorf("%s with the token: %d %s", route, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if w := r.do("GET", path); w.Code != http.StatusOK {
			t.Errorf("%s without the token: %d %s", path, w.Code, w.Body)
		}
	}
}

func TestPagesOfOtherOriginsChangeNothing(t *testing.T) {
	r := newRig(t, hot.Options{}, admin.Options{})
	r.create("orders", "[1]")
	r.refused(r.do("POST", "/admin/streams/default/orders/seal", "Sec-Fetch-Site: cross-site"), http.StatusForbidden, "cross_origin")
	r.refused(r.do("POST", "/admin/streams/default/orders/seal", "Origin: https://evil.example"), http.StatusForbidden, "cross_origin")
	if d := get[admin.Description](r, "GET", "/admin/streams/default/orders"); d.Marks.Sealed != 0 {
		t.Errorf("it is sealed: %+v", d.Marks)
	}
}

func TestSealAndEvictAnswerWhenDone(t *testing.T) {
	r := newRig(t, hot.Options{}, admin.Options{})
	r.create("a/b c", "[1,2,3]")
	const path = "/admin/streams/default/a/b%20c"
	d := get[admin.Description](r, "GET", path)
	if d.Stream != "a/b c" || d.Mode != "json" || d.Marks != (admin.Marks{Tail: 6}) || d.HotBytes != 6 || d.Unsealed != 6 || len(d.Segments) != 0 {
		t.Errorf("before: %+v", d)
	}
	d = get[admin.Description](r, "POST", path+"/seal")
	if d.Marks != (admin.Marks{Sealed: 6, Tail: 6}) || d.HotBytes != 6 || d.Unsealed != 0 || d.SegmentCount != 1 || d.Segments[0].To != 6 {
		t.Errorf("sealed: %+v", d)
	}
	d = get[admin.Description](r, "POST", path+"/evict")
	if d.Marks != (admin.Marks{Cut: 6, Sealed: 6, Tail: 6}) || d.HotBytes != 0 {
		t.Errorf("evicted: %+v", d)
	}
	b := get[admin.Buckets](r, "GET", "/admin/buckets")
	if len(b.Buckets) != 1 || b.Buckets[0].Bucket != "default" {
		t.Errorf("buckets: %+v", b)
	}
}

func TestRefusals(t *testing.T) {
	r := newRig(t, hot.Options{}, admin.Options{})
	for _, c := range []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/", 404, "no_such_resource"},
		{"GET", "/admin", 404, "no_such_resource"},
		{"GET", "/admin/streams/default", 404, "no_such_resource"},
		{"POST", "/healthz", 405, "method_not_allowed"},
		{"POST", "/metrics", 405, "method_not_allowed"},
		{"DELETE", "/admin/streams/default/orders", 405, "method_not_allowed"},
		{"GET", "/admin/streams/x/orders", 400, "bucket_name_invalid"},
		{"GET", "/admin/streams/demo/a/b", 400, "stream_name_invalid"},
		{"GET", "/admin/streams/default/a%2Fb", 400, "stream_name_invalid"},
		{"GET", "/admin/streams/default/%ff", 400, "stream_name_invalid"},
		{"GET", "/admin/streams/demo/orders", 404, "bucket_not_found"},
		{"GET", "/admin/streams/default/orders", 404, "stream_not_found"},
		{"POST", "/admin/streams/default/orders/seal", 404, "stream_not_found"},
		{"POST", "/admin/streams/default/orders/evict", 404, "stream_not_found"},
	} {
		t.Run(c.method+c.path, func(t *testing.T) {
			r.t = t
			r.refused(r.do(c.method, c.path), c.status, c.code)
		})
	}
}

func TestSealTellsThatTheStoreIsAway(t *testing.T) {
	r := newRig(t, hot.Options{}, admin.Options{})
	r.create("orders", "[1]")
	r.blobs.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always})
	r.refused(r.do("POST", "/admin/streams/default/orders/seal"), http.StatusServiceUnavailable, "cold_unavailable")
}

// workUntil lets the compactor work until readiness is as wanted, and returns it.
func (r *rig) workUntil(wanted func(admin.Readiness) bool) (a admin.Readiness) {
	r.t.Helper()
	ctx, stop := context.WithCancel(r.t.Context())
	done := make(chan error, 1)
	go func() { done <- r.compactor.Run(ctx) }()
	for deadline := time.Now().Add(30 * time.Second); !wanted(a) && time.Now().Before(deadline); {
		<-time.After(time.Millisecond)
		a = get[admin.Readiness](r, "GET", "/readyz")
	}
	stop()
	if err := <-done; err != nil {
		r.t.Error(err)
	}
	return a
}

func TestReadiness(t *testing.T) {
	r := newRig(t, hot.Options{HardBytes: 4, SealTarget: 1}, admin.Options{})
	if a := get[admin.Readiness](r, "GET", "/readyz"); !a.Ready || len(a.Reasons)+len(a.Notes) != 0 {
		t.Errorf("at first: %+v", a)
	}
	// Neither a full hot tier nor a store that is away is a reason to go elsewhere.
	r.create("orders", "[1,2]")
	if a := get[admin.Readiness](r, "GET", "/readyz"); !a.Ready || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], "appends are refused") {
		t.Errorf("with a full hot tier: %+v", a)
	}
	r.blobs.Script(fault.Fault{Kind: fault.Before, Times: fault.Always})
	trouble := r.workUntil(func(a admin.Readiness) bool { return len(a.Notes) == 2 })
	if !trouble.Ready || len(trouble.Notes) != 2 || !strings.Contains(trouble.Notes[1], "the compactor fails since") {
		t.Errorf("with the store away: %+v", trouble)
	}
	r.admin.Drain()
	w := r.do("GET", "/readyz")
	var a admin.Readiness
	if err := json.Unmarshal(w.Body.Bytes(), &a); w.Code != http.StatusServiceUnavailable || err != nil || a.Ready || len(a.Reasons) != 1 {
		t.Errorf("draining: %d %s", w.Code, w.Body)
	}
	if w := r.do("GET", "/healthz"); w.Code != http.StatusOK {
		t.Errorf("health while draining: %d", w.Code)
	}
}

// A verification tells how far it is, and at last what it found.
func TestVerify(t *testing.T) {
	r := newRig(t, hot.Options{}, admin.Options{})
	r.create("orders", "[1]")
	r.do("POST", "/admin/streams/default/orders/seal")
	w := r.do("POST", "/admin/verify?rate=1000000")
	lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
	var last admin.Verification
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); w.Code != http.StatusOK || err != nil || last.Report == nil {
		t.Fatalf("%d %q: %v", w.Code, lines, err)
	}
	if len(lines) < 2 || !last.Report.Clean() || last.Report.Objects != 1 {
		t.Errorf("report is %+v, after %d lines", last.Report, len(lines)-1)
	}
	for _, q := range []string{"rate=-1", "rate=x", "structure=perhaps"} {
		r.refused(r.do("POST", "/admin/verify?"+q), http.StatusBadRequest, "parameter_invalid")
	}
}
