package scrub

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"firn/tier/hot"
)

type metrics struct {
	objects  *prometheus.CounterVec
	bytes    prometheus.Counter
	badReads prometheus.Counter
	damaged  *prometheus.GaugeVec
	waiting  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer, s *Scrubber) *metrics {
	f := promauto.With(r)
	m := &metrics{
		objects: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_scrub_objects_total",
			Help: "Objects that were looked at by what was found: whole, damaged, gone (not needed any more), unanswered.",
		}, []string{"result"}),
		bytes: f.NewCounter(prometheus.CounterOpts{Name: "firn_scrub_bytes_total", Help: "Bytes of objects read for it."}),
		badReads: f.NewCounter(prometheus.CounterOpts{
			Name: "firn_scrub_bad_reads_total", Help: "Objects that were wrong at one reading and whole at the next.",
		}),
		damaged: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "firn_scrub_damaged_objects", Help: "Objects that streams name and that are known to be damaged, by what is wrong.",
		}, []string{"damage"}),
		waiting: f.NewGauge(prometheus.GaugeOpts{
			Name: "firn_scrub_unanswered_objects", Help: "Objects about which the store gave no answer; they are tried again.",
		}),
	}
	for _, v := range [...]verdict{whole, damaged, gone, unanswered} {
		m.objects.WithLabelValues(v.String())
	}
	for _, d := range hot.Damages {
		m.damaged.WithLabelValues(d.String())
	}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_scrub_whole_round_seconds",
		Help: "Time since the last round began in which every object was read, or since the first one began; 0 without rounds.",
	}, func() float64 { return s.unread().Seconds() })
	return m
}
