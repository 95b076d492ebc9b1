package bench_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"firn/internal/bench"
)

// report is one with everything in it.
func report() *bench.Report {
	sample := func(rate float64) bench.Sample {
		s := bench.Sample{Ops: 10, Rate: rate, Records: 2 * rate, Bytes: 256 * rate, Latency: bench.NewLatency()}
		for i := range 1000 {
			s.Latency.Record(time.Duration(i) * time.Microsecond)
		}
		return s
	}
	server, limit := []bench.Sample{sample(15000), sample(16000), sample(12000)}, []bench.Sample{sample(20000), sample(20000), sample(20000)}
	bad := sample(1)
	bad.Errors, bad.Error = 3, errors.New("append: unexpected status 500")
	return &bench.Report{
		Version: 1, Began: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), Server: "firn serve", Peer: "http://127.0.0.1:4437/v1/stream",
		Machine: bench.Machine{OS: "linux", Arch: "amd64", CPUs: 2, Go: "go1.26", LoadBefore: .5, LoadAfter: 2.25},
		Results: []bench.Result{
			{Scenario: "append", Case: "one", Sides: []bench.SideResult{bench.Summarize("server", server), bench.Summarize("empty handler", limit)},
				Figures: []bench.Figure{bench.Ratio(server, limit).AtLeast(.75), bench.Ratio(server, limit).AtMost(.5)}},
			{Scenario: "append", Case: "two", Sides: []bench.SideResult{bench.Summarize("server", []bench.Sample{bad})}, Figures: []bench.Figure{}},
			{Scenario: "start", Case: "three", Sides: []bench.SideResult{}, Figures: []bench.Figure{}, Skipped: "why"},
			{Scenario: "start", Case: "four", Sides: []bench.SideResult{}, Figures: []bench.Figure{}, Error: "what"},
		},
	}
}

// Programs read the JSON, so it does not change; the golden file is not made again.
func TestReportIsStable(t *testing.T) {
	var asJSON, asTable bytes.Buffer
	e := json.NewEncoder(&asJSON)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(report()); err != nil {
		t.Fatal(err)
	}
	if err := report().WriteTable(&asTable); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string][]byte{"report.json": asJSON.Bytes(), "report.txt": asTable.Bytes()} {
		want, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is now\n%s", name, got)
		}
	}
}

func TestFailures(t *testing.T) {
	if n := report().Failures(); n != 2 {
		t.Errorf("%d cases have failed, want those with an error and with a server that gave one", n)
	}
}
