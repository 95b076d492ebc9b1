package retry_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/retry"
)

// That no call goes well is told with the time of the first failure, whether the store is
// away or refuses, until one goes well.
func TestTroubleIsTold(t *testing.T) {
	for what, cause := range map[string]error{"away": blob.ErrUnavailable, "refuses": blob.ErrDenied} {
		t.Run(what, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			s, f, c := stack(t, retry.Options{Attempts: 1, Registerer: registry})
			call := func() { _ = put(t, s, "k", "x", blob.PutOptions{}) }
			call()
			f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Err: cause, Times: 3})
			c.advance(time.Minute)
			began := c.Now()
			call()
			call()
			if _, err := s.Trouble(); err != nil {
				t.Errorf("after two failures: %v", err)
			}
			c.advance(time.Minute)
			call()
			if since, err := s.Trouble(); !errors.Is(err, cause) || !since.Equal(began) {
				t.Errorf("after three: since %v, %v; want since %v", since, err, began)
			}
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "firn_object_trouble_seconds" })
			if i < 0 || families[i].Metric[0].Gauge.GetValue() != 60 {
				t.Errorf("in the metrics: %v", families)
			}
			call()
			if _, err := s.Trouble(); err != nil {
				t.Errorf("after a success: %v", err)
			}
		})
	}
}

// A refusal of a condition and a missing object are answers, as good as any.
func TestTroubleEndsWithAnyAnswer(t *testing.T) {
	s, f, _ := stack(t, retry.Options{Attempts: 3})
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Times: 3})
	get := func() error { _, _, err := s.Get(t.Context(), "k", 0, -1); return err }
	if err := get(); !errors.Is(err, blob.ErrUnavailable) {
		t.Fatal(err)
	}
	if _, err := s.Trouble(); err == nil {
		t.Error("no trouble after three failures")
	}
	if err := get(); !errors.Is(err, blob.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.Trouble(); err != nil {
		t.Errorf("after an answer: %v", err)
	}
}
