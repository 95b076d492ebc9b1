package meter_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/blob/meter"

	"github.com/prometheus/client_golang/prometheus"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store {
		return meter.New(mem.New(mem.Options{}), meter.Options{Registerer: prometheus.NewRegistry()})
	}, blobtest.Options{})
}

func TestMetrics(t *testing.T) {
	ctx := t.Context()
	reg := prometheus.NewRegistry()
	f := fault.New(mem.New(mem.Options{}))
	now := time.Unix(0, 0)
	s := meter.New(f, meter.Options{Registerer: reg, Now: func() time.Time {
		now = now.Add(100 * time.Millisecond) // so that every call takes that long
		return now
	}})
	put := func() error {
		_, err := s.Put(ctx, "k", strings.NewReader("0123456789"), blob.PutOptions{IfNoneMatch: true})
		return err
	}
	get := func(off, n int64) { blob.ReadAll(ctx, s, "k", off, n) }

	put()
	put() // exists
	get(0, -1)
	get(2, 3)
	get(5, 50) // range
	r, _, err := s.Get(ctx, "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if n := values(t, reg)["firn_object_calls_in_flight"]; n != 1 {
		t.Errorf("%v calls in flight beside an open body", n)
	}
	r.Close() // enough after no byte
	r.Close()
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Cut, At: 4})
	get(0, -1)
	s.List(ctx, "", "", func(blob.Info) error { return errors.New("enough") })
	s.Delete(ctx, "k", "absent", "\n")
	get(0, -1)
	for _, e := range []error{blob.ErrDenied, blob.ErrUnavailable, blob.ErrCorrupt, blob.ErrNotSupported, context.Canceled, errors.New("?")} {
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Err: e})
		put()
	}

	got := values(t, reg)
	for _, c := range []struct {
		name string
		want float64
	}{
		{"firn_object_calls_in_flight", 0},
		{"firn_object_calls_total delete key", 1},
		{"firn_object_calls_total get not_found", 1},
		{"firn_object_calls_total get ok", 3},
		{"firn_object_calls_total get range", 1},
		{"firn_object_calls_total get unavailable", 1},
		{"firn_object_calls_total list ok", 1},
		{"firn_object_calls_total put canceled", 1},
		{"firn_object_calls_total put corrupt", 1},
		{"firn_object_calls_total put denied", 1},
		{"firn_object_calls_total put exists", 1},
		{"firn_object_calls_total put not_supported", 1},
		{"firn_object_calls_total put ok", 1},
		{"firn_object_calls_total put other", 1},
		{"firn_object_calls_total put unavailable", 1},
		{"firn_object_deleted_total", 2},
		{"firn_object_read_bytes_total", 10 + 3 + 4},
		{"firn_object_written_bytes_total", 10},
	} {
		if v, ok := got[c.name]; !ok || v != c.want {
			t.Errorf("%s is %v, want %v", c.name, v, c.want)
		}
		delete(got, c.name)
	}
	if len(got) > 0 {
		t.Errorf("metrics that nobody expects: %v", got)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, fam := range families {
		if fam.GetName() != "firn_object_call_seconds" {
			continue
		}
		for _, m := range fam.GetMetric() {
			h := m.GetHistogram()
			if got := h.GetSampleSum() / float64(h.GetSampleCount()); got < 0.099 || got > 0.101 {
				t.Errorf("%v: mean %v s, want 0.1", m.GetLabel(), got)
			}
			if len(h.GetBucket()) == 0 || h.GetSchema() == 0 {
				t.Errorf("%v: want classic and native buckets", m.GetLabel())
			}
		}
	}
}

// values returns the counters and gauges by name and label values.
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, fam := range families {
		for _, m := range fam.GetMetric() {
			name := fam.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			switch {
			case m.GetCounter() != nil:
				all[name] = m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				all[name] = m.GetGauge().GetValue()
			}
		}
	}
	return all
}
