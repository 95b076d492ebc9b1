package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"firn/internal/bench"
)

// quick are the sizes in which a scenario takes no time.
var quick = []string{"bench", "-q", "-o", "json", "--rounds=1", "--interval=50ms", "--mib=1", "--readers=10", "--many=50",
	"--serve=--hot.min-free-bytes=0", "--serve=--hot.memtable-bytes=1MiB"}

// benchmark runs `firn bench` with the test's binary for the servers that it starts.
func benchmark(t *testing.T, args ...string) (*bench.Report, outcome) {
	t.Helper()
	args = append(append([]string{}, quick...), append(args, "--dir="+t.TempDir())...)
	o := firn([]string{asFirn + "=1"}, args...)
	r := new(bench.Report)
	if strings.HasPrefix(o.stdout, "{") {
		decode(t, o.stdout, r)
	}
	return r, o
}

// Every scenario finds what it looks for on a server that is well, with the sides and
// figures that it is about.
func TestBenchScenarios(t *testing.T) {
	for _, c := range []struct {
		scenario string
		cases    int
		sides    string
		figures  string // begins of the first case's
	}{
		{"append", 5, "server, empty handler, synced log", "server / empty handler, server / empty handler with a synced log, p99.9 / p50"},
		{"producer", 1, "server", ""},
		{"read", 2, "server, file sent by the kernel", "server / file sent by the kernel"},
		{"cold", 2, "server, GETs and zstd", "server / parallel GETs and zstd, GETs for each MiB of frames, frames"},
		{"fanout", 2, "server", "messages delivered, of all"},
		{"bootstrap", 1, "server, empty handler", "p99 of the server / of a GET from an empty handler, server / empty handler"},
		{"create", 1, "server, empty handler, synced log", "server / empty handler"},
		{"tiny", 1, "server, empty handler, synced log", "server / empty handler, server / empty handler with a synced log, p99.9 / p50"},
		{"seal", 1, "appends while sealing, appends alone, sealing alone", "sealed for each second of a core, p99 of appends while sealing / alone"},
		{"start", 1, "server, open of Pebble", "start of the server / of a program that opens Pebble, resident after the start, heap and stacks for each stream, after the start"},
		{"memory", 1, "server", "heap and stacks for each reader, resident for each reader, first round"},
	} {
		t.Run(c.scenario, func(t *testing.T) {
			t.Parallel()
			r, o := benchmark(t, c.scenario)
			if o.code != exitOK || len(r.Results) != c.cases {
				t.Fatalf("exit code %d, %d cases\n%s%s", o.code, len(r.Results), o.stdout, o.stderr)
			}
			for _, res := range r.Results {
				for _, s := range res.Sides {
					l := s.Latency
					if s.Operations == 0 || s.PerSecond.Median <= 0 || s.Errors > 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max {
						t.Errorf("%s: %+v", res.Case, s)
					}
				}
			}
			var sides, figures []string
			for _, s := range r.Results[0].Sides {
				sides = append(sides, s.Name)
			}
			for _, f := range r.Results[0].Figures {
				figures = append(figures, f.Name)
				if f.Median <= 0 && f.Unit != "B" && f.Unit != "KiB" { // memory of so few is noise
					t.Errorf("%s is %v", f.Name, f.Median)
				}
			}
			if got := strings.Join(sides, ", "); got != c.sides {
				t.Errorf("sides: %s", got)
			}
			if got := strings.Join(figures, ", "); got != c.figures {
				t.Errorf("figures: %s", got)
			}
		})
	}
	if got := len(bench.Scenarios()); got != 11 {
		t.Errorf("there are %d scenarios", got)
	}
}

// A server that runs already is measured beside another one, and left as it was.
func TestBenchOfOtherServers(t *testing.T) {
	s, peer := start(t, t.TempDir()), start(t, t.TempDir())
	all := []string{"append", "producer", "read", "fanout", "bootstrap", "create"}
	for name, args := range map[string][]string{
		"buckets": {"--url=" + s.url, "--vs=" + peer.url + "/v1/stream"},
		"flat":    {"--url=" + s.url + "/v1/stream", "--flat"},
	} {
		r, o := benchmark(t, append(append(all, "cold"), args...)...)
		if o.code != exitOK {
			t.Fatalf("%s: exit code %d\n%s", name, o.code, o.stderr)
		}
		for _, res := range r.Results {
			skipped := res.Scenario == "cold" || res.Scenario == "bootstrap" && name == "flat"
			if skipped != (res.Skipped != "") {
				t.Errorf("%s, %s: skipped: %q", name, res.Scenario, res.Skipped)
			}
			if compared := strings.Contains(o.stdout, "server / peer, p99"); compared != (name == "buckets") {
				t.Errorf("%s: compared with a peer: %v", name, compared)
			}
		}
	}
	if got := s.mustFirn("bucket", "ls"); strings.Contains(got, "bench") || !strings.Contains(got, "default  0") {
		t.Errorf("of the streams is left:\n%s", got)
	}
	s.mustStop()
	peer.mustStop()
}

// A server that answers with errors, or with less than there is, has no figures: the run
// fails, and says why.
func TestBenchOfABrokenServer(t *testing.T) {
	for _, c := range []struct {
		name, scenario, says string
		answer               http.HandlerFunc
	}{
		{"errors", "append", "unexpected status 503", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(map[string]int{"PUT": 201, "DELETE": 204}[r.Method] + map[string]int{"POST": 503}[r.Method])
		}},
		{"offsets that stay", "append", "unexpected content", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Stream-Next-Offset", "1")
			w.WriteHeader(map[string]int{"PUT": 201, "DELETE": 204}[r.Method] + map[string]int{"POST": 204}[r.Method])
		}},
		{"bytes that are missing", "read", "unexpected content", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Stream-Up-To-Date", "true")
			w.WriteHeader(map[string]int{"PUT": 201, "GET": 200, "DELETE": 204}[r.Method] + map[string]int{"POST": 204}[r.Method])
		}},
	} {
		srv := httptest.NewServer(c.answer)
		_, o := benchmark(t, c.scenario, "--url="+srv.URL, "--flat")
		if o.code != exitFailure || !strings.Contains(o.stdout, c.says) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", c.name, o.code, exitFailure, c.says, o.stdout, o.stderr)
		}
		srv.Close()
	}
}

func TestBenchUsage(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"bench fly", exitUsage, "no such scenario"},
		{"bench append --url nowhere", exitFailure, "http or https"},
		{"bench append --url http://127.0.0.1:1 --header x", exitFailure, "Name: value"},
		{"bench append --url http://127.0.0.1:1", exitFailure, "refused"},
	} {
		o := firn(nil, strings.Fields(c.args)...)
		if o.code != c.code || !strings.Contains(o.stdout+o.stderr, c.says) {
			t.Errorf("firn %s: exit code %d, want %d and %q\n%s%s", c.args, o.code, c.code, c.says, o.stdout, o.stderr)
		}
	}
}

// An interrupt ends the servers that were started, removes what they kept, and prints
// what is known.
func TestBenchIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var stdout, stderr buffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"bench", "append", "--interval=1h", "--dir=" + dir}, []string{asFirn + "=1"}, &stdout, &stderr)
	}()
	until(t, "it measures", func() bool { return strings.Contains(stderr.String(), "preparing") })
	interrupt()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if !strings.Contains(stdout.String(), "server: firn serve") {
		t.Errorf("printed %q", stdout.String())
	}
}
