package api

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"firn/tier"
)

// metrics of the surface. Labels come from small fixed sets: route templates, never
// stream names.
type metrics struct {
	mu     sync.RWMutex
	series map[seriesKey]series // those of requests and duration that have been used

	requests    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	received    prometheus.Counter
	sent        prometheus.Counter
	live        *prometheus.GaugeVec
	bootstraps  *prometheus.CounterVec
	reads       *prometheus.CounterVec
	readBytes   *prometheus.CounterVec
	codings     *prometheus.CounterVec
	codingSaved prometheus.Counter
	codingBusy  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		series: make(map[seriesKey]series),
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_http_requests_total",
			Help: "Requests by route template, method and status; 499 is a client that left.",
		}, []string{"route", "method", "status"}),
		duration: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            "firn_http_request_duration_seconds",
			Help:                            "Time from the request's header to the end of its answer, live reads aside.",
			Buckets:                         []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  160,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"route", "method"}),
		received: f.NewCounter(prometheus.CounterOpts{
			Name: "firn_http_received_bytes_total",
			Help: "Bytes of request bodies.",
		}),
		sent: f.NewCounter(prometheus.CounterOpts{
			Name: "firn_http_sent_bytes_total",
			Help: "Bytes of response bodies.",
		}),
		live: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "firn_http_live_readers",
			Help: "Connected live readers by kind.",
		}, []string{"kind"}),
		bootstraps: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_http_bootstraps_total",
			Help: "Bootstrap answers: complete, or partial because of cold updates or of their size.",
		}, []string{"result"}),
		reads: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_http_pages_total",
			Help: "Pages read for clients by the tier that they came from.",
		}, []string{"tier"}),
		readBytes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_http_page_bytes_total",
			Help: "Stored bytes read for clients by the tier that they came from.",
		}, []string{"tier"}),
		codings: f.NewCounterVec(prometheus.CounterOpts{
			Name: "firn_http_compressed_answers_total",
			Help: "Answers that were compressed, by content coding.",
		}, []string{"coding"}),
		codingSaved: f.NewCounter(prometheus.CounterOpts{
			Name: "firn_http_compression_saved_bytes_total",
			Help: "Bytes that compressed answers had less than they stand for.",
		}),
		codingBusy: f.NewCounter(prometheus.CounterOpts{
			Name: "firn_http_compression_busy_total",
			Help: "Answers sent as they are because all encoders were at work.",
		}),
	}
}

// observe counts a finished request.
func (m *metrics) observe(a *answer, method string, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions:
	default:
		method = "other" // clients may send any word
	}
	of := m.seriesOf(seriesKey{a.route, method, a.status})
	of.requests.Inc()
	if !a.live {
		of.duration.Observe(took.Seconds())
	}
	m.received.Add(float64(a.received))
	m.sent.Add(float64(a.sent))
}

// seriesKey has values of labels; series is what they stand for.
type (
	seriesKey struct {
		route, method string
		status        int
	}
	series struct {
		requests prometheus.Counter
		duration prometheus.Observer
	}
)

// seriesOf spares a request the search by labels, which costs more than counting.
func (m *metrics) seriesOf(k seriesKey) series {
	m.mu.RLock()
	of, ok := m.series[k]
	m.mu.RUnlock()
	if !ok {
		of = series{
			requests: m.requests.WithLabelValues(k.route, k.method, strconv.Itoa(k.status)),
			duration: m.duration.WithLabelValues(k.route, k.method),
		}
		m.mu.Lock()
		m.series[k] = of
		m.mu.Unlock()
	}
	return of
}

// read counts a page.
func (m *metrics) read(p *tier.Page) {
	if len(p.Data) > 0 {
		m.reads.WithLabelValues(p.Tier.String()).Inc()
		m.readBytes.WithLabelValues(p.Tier.String()).Add(float64(len(p.Data)))
	}
}

// coded counts an answer of size bytes that went out as fewer.
func (m *metrics) coded(c coding, size, sent int64) {
	m.codings.WithLabelValues(c.String()).Inc()
	m.codingSaved.Add(float64(max(size-sent, 0)))
}

// bootstrap counts an answer; partial is why it stops early, or empty.
func (m *metrics) bootstrap(partial string) {
	if partial == "" {
		partial = "complete"
	}
	m.bootstraps.WithLabelValues(partial).Inc()
}

// liveReader counts a live reader until the returned function is called.
func (m *metrics) liveReader(kind string) (gone func()) {
	g := m.live.WithLabelValues(kind)
	g.Inc()
	return g.Dec
}
