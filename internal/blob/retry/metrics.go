package retry

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	retries *prometheus.CounterVec
	state   prometheus.Gauge
	refused prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_object_retries_total",
			Help: "Further attempts after a failed one, by operation; body: a download continued after it broke off.",
		}, []string{"op"}),
		state: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "firn_object_breaker_state",
			Help: "Whether calls to the object store are let through: 0 all, 1 none because it keeps failing, 2 one at a time to see.",
		}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "firn_object_breaker_refused_total",
			Help: "Calls that failed at once because the breaker was open.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.retries, m.state, m.refused)
	}
	return m
}
