package backup

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	objects, bytes, failures prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, r *Runner) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_backup_age_seconds",
		Help: "Time since everything was in a copy of the catalog: about what would be lost with the disk. Before the first copy, the time since the start.",
	}, func() float64 {
		return time.Duration((r.hot.Now() - max(r.Status().Ms, r.started)) * uint64(time.Millisecond)).Seconds()
	})
	return &metrics{
		objects:  f.NewCounter(prometheus.CounterOpts{Name: "firn_backup_objects_total", Help: "Objects written with copies of the catalog."}),
		bytes:    f.NewCounter(prometheus.CounterOpts{Name: "firn_backup_bytes_total", Help: "Their bytes."}),
		failures: f.NewCounter(prometheus.CounterOpts{Name: "firn_backup_failures_total", Help: "Attempts to copy the catalog that failed."}),
	}
}
