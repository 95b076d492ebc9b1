package api

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// clearText2 is a client that speaks HTTP/2 without TLS, and nothing else.
func clearText2(t *testing.T) *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &p}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func serveFunc(t *testing.T, h http.HandlerFunc) string {
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = NewHTTPServer(h, Options{})
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestStalledClientIsGivenUp(t *testing.T) {
	for name, client := range map[string]*http.Client{"HTTP/1.1": {Transport: &http.Transport{}}, "HTTP/2": clearText2(t)} {
		t.Run(name, func(t *testing.T) {
			result := make(chan error, 1)
			url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
				a := newAnswer(w, r, 100*time.Millisecond)
				_, err := a.Write(make([]byte, 64<<20))
				result <- err
			})
			res, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if err := <-result; err == nil {
				t.Error("64 MiB were taken by a client that reads nothing")
			} else if name == "HTTP/1.1" && !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSilenceIsNoStall(t *testing.T) {
	const stall = 20 * time.Millisecond
	for name, client := range map[string]*http.Client{"HTTP/1.1": {Transport: &http.Transport{}}, "HTTP/2": clearText2(t)} {
		t.Run(name, func(t *testing.T) {
			url := serveFunc(t, func(w http.ResponseWriter, r *http.Request) {
				a := newAnswer(w, r, stall)
				io.WriteString(a, "one ")
				a.Flush()
				<-time.After(5 * stall)
				io.WriteString(a, "two")
				a.finish()
			})
			res, err := client.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if got, err := io.ReadAll(res.Body); string(got) != "one two" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestMetricsNameRoutes(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := New(Options{Registerer: reg}).Handler()
	for _, path := range []string{"/secret", "/ds/abc", "/ds/trial/..", "/ds/trial/a%2Fb/snapshot/x", "/v1/stream/a//b"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("SECRET", "/ds/abc", nil))

	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "firn_http_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() { // sorted by name
				key += l.GetValue() + " "
			}
			got[key] = m.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"GET none 404 ":                                    1,
		"GET /ds/{bucket} 400 ":                            1,
		"GET /ds/{bucket}/{stream} 400 ":                   1,
		"GET /ds/{bucket}/{stream}/snapshot/{offset} 400 ": 1,
		"GET /v1/stream/{path} 400 ":                       1,
		"other /ds/{bucket} 405 ":                          1,
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: got %v", k, got[k])
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

func TestPanicIsAnswered(t *testing.T) {
	h := New(Options{}).Handler() // without a store
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("HEAD", "/v1/stream/s", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("got %d", w.Code)
	}
}
