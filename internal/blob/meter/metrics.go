package meter

import (
	"context"
	"errors"
	"time"

	"firn/internal/blob"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight prometheus.Gauge
	read     prometheus.Counter
	written  prometheus.Counter
	deleted  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_object_calls_total",
			Help: "Calls to the object store, each attempt by itself, by operation and result.",
		}, []string{"op", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "firn_object_call_seconds",
			Help: "Duration of calls to the object store; of a get until its body begins.",
			// Both forms: text scrapes carry only the classic buckets.
			Buckets:                         []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  160,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"op"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_object_calls_in_flight",
			Help: "Calls to the object store that have not ended, bodies included.",
		}),
		read: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "firn_object_read_bytes_total",
			Help: "Bytes of objects read from the object store.",
		}),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "firn_object_written_bytes_total",
			Help: "Bytes of objects written to the object store by calls that succeeded.",
		}),
		deleted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "firn_object_deleted_total",
			Help: "Objects whose deletion the object store confirmed.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.seconds, m.inFlight, m.read, m.written, m.deleted)
	}
	return m
}

// result is the label for an outcome; the first match counts.
func result(err error) string {
	if err == nil {
		return "ok"
	}
	for _, r := range []struct {
		label string
		is    error
	}{
		{"canceled", context.Canceled},
		{"denied", blob.ErrDenied},
		{"corrupt", blob.ErrCorrupt},
		{"unavailable", blob.ErrUnavailable},
		{"canceled", context.DeadlineExceeded},
		{"not_found", blob.ErrNotFound},
		{"exists", blob.ErrExists},
		{"precondition", blob.ErrPrecondition},
		{"not_supported", blob.ErrNotSupported},
		{"range", blob.ErrRange},
		{"key", blob.ErrKey},
	} {
		if errors.Is(err, r.is) {
			return r.label
		}
	}
	return "other"
}
