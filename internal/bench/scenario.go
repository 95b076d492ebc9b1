package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrScenario: there is no such scenario.
var ErrScenario = errors.New("no such scenario")

// Scenario is something that servers are asked for.
type Scenario struct {
	Name  string
	About string
	// needs are what cases cannot do without.
	own, buckets bool
	cases        func(o Options) []testCase
}

// testCase is one measurement of a scenario.
type testCase struct {
	title string
	setup func(ctx context.Context, r *rig) (*comparison, error)
}

// Scenarios are all there are, in the order in which they run.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "append", About: "appends of one and of many clients, to one stream and to many, of bytes and of JSON", cases: appendCases},
		{Name: "producer", About: "the Go client: an idempotent producer, and a follower that sees all of it", cases: producerCases},
		{Name: "read", About: "catching up with streams that are hot", cases: readCases},
		{Name: "cold", About: "catching up with a stream in cold storage, and with one that is half there", own: true, cases: coldCases},
		{Name: "fanout", About: "many live readers of one stream, by events and by long-poll", cases: fanoutCases},
		{Name: "bootstrap", About: "a snapshot and the updates after it in one answer", buckets: true, cases: bootstrapCases},
		{Name: "create", About: "new streams", cases: createCases},
		{Name: "tiny", About: "small appends, each to another of many streams", cases: tinyCases},
		{Name: "seal", About: "writing to cold storage, and what appends notice of it", own: true, cases: sealCases},
		{Name: "start", About: "the start of a server with many streams", own: true, cases: startCases},
		{Name: "memory", About: "what a live reader and an idle stream hold in memory", own: true, cases: memoryCases},
	}
}

// Run measures. The report holds what was found until ctx ended or something failed, and
// [Report.Failures] tells whether a server answered wrongly. Errors: [ErrScenario]; that
// of ctx.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	o = o.withDefaults()
	todo, err := choose(o.Scenarios)
	if err != nil {
		return nil, err
	}
	r, err := newRig(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	report := &Report{Version: 1, Began: time.Now(), Server: o.URL, Peer: o.VS, Results: []Result{}, Machine: Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version(), LoadBefore: load(),
	}}
	if o.URL == "" {
		report.Server = strings.Join(append([]string{"firn serve"}, o.ServerArgs...), " ")
	}
	for _, s := range todo {
		for _, c := range s.cases(o) {
			res := Result{Scenario: s.Name, Case: c.title, Sides: []SideResult{}, Figures: []Figure{}}
			switch {
			case s.own && o.URL != "":
				res.Skipped = "it needs a server that is started for it: leave --url out"
			case s.buckets && o.Flat:
				res.Skipped = "it needs a server with buckets"
			default:
				r.measure(ctx, c, &res)
			}
			if ctx.Err() != nil {
				return report, ctx.Err()
			}
			report.Results = append(report.Results, res)
		}
	}
	report.Machine.LoadAfter = load()
	return report, nil
}

// choose returns the scenarios of the given names; all, if there are none.
func choose(names []string) ([]Scenario, error) {
	all := Scenarios()
	if len(names) == 0 {
		return all, nil
	}
	var chosen []Scenario
	for _, name := range names {
		i := slices.IndexFunc(all, func(s Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w as %q", ErrScenario, name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// measure runs one case.
func (r *rig) measure(ctx context.Context, c testCase, res *Result) {
	tell := func(text string) { fmt.Fprintf(r.o.Progress, "%s %s: %s\n", res.Scenario, res.Case, text) }
	tell("preparing")
	cmp, err := c.setup(ctx, r)
	if err != nil {
		res.Error = err.Error()
		return
	}
	defer cmp.end()
	samples, err := cmp.run(ctx, r.o, tell)
	if err != nil {
		res.Error = err.Error()
		return
	}
	for i, s := range cmp.sides {
		side := sideResult(s.Name, samples[i])
		res.Sides = append(res.Sides, side)
		if side.Errors == 0 && side.Operations == 0 {
			res.Error = fmt.Sprintf("%s has done nothing within %s", s.Name, r.o.Interval)
		}
	}
	if cmp.figures != nil {
		res.Figures = cmp.figures(samples)
	}
	if i := slices.IndexFunc(cmp.sides, func(s Side) bool { return s.Name == sidePeer }); i > 0 {
		res.Figures = append(res.Figures,
			ratio("server / peer, rate", samples[0], samples[i], rate),
			ratio("server / peer, p50", samples[0], samples[i], percentile(50)),
			ratio("server / peer, p99", samples[0], samples[i], percentile(99)))
	}
}

// load is the average of the last minute; -1 where it is not known.
func load() float64 {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(b), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return v
}
