package subscribe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	wakes          *prometheus.CounterVec
	attempts       *prometheus.CounterVec
	claims         prometheus.Counter
	webhookSeconds prometheus.Histogram
}

func newMetrics(r prometheus.Registerer, e *Engine) *metrics {
	f := promauto.With(r)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_subscriptions", Help: "Subscriptions.",
	}, func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.entries))
	})
	return &metrics{
		wakes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_subscription_wakes_total", Help: "Wakes begun, by type of subscription.",
		}, []string{"type"}),
		attempts: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_subscription_attempts_total",
			Help: "Attempts to wake: webhooks that were accepted, and webhooks and events that failed.",
		}, []string{"result"}),
		claims: f.NewCounter(prometheus.CounterOpts{
			Name: "firn_subscription_claims_total", Help: "Pull-wakes claimed.",
		}),
		webhookSeconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "firn_subscription_webhook_seconds", Help: "Time until a webhook was answered or given up.",
			Buckets:                     []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
		}),
	}
}
