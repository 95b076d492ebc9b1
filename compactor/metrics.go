package compactor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	passes      *prometheus.CounterVec
	seals       *prometheus.CounterVec
	sealedBytes prometheus.Counter
	// rewrites are segments by reason and result.
	rewrites       *prometheus.CounterVec
	rewrittenBytes *prometheus.CounterVec
	// sealedObjects are fewer than the segments: small streams share them.
	sealedObjects prometheus.Counter
	objectBytes   prometheus.Counter
	sealSeconds   prometheus.Histogram
	evictions     prometheus.Counter
	evictedBytes  prometheus.Counter
	trimmed       prometheus.Counter
	swept         prometheus.Counter
	reclaims      prometheus.Counter
}

func newMetrics(r prometheus.Registerer, c *Compactor) *metrics {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		m := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(m)
		return m
	}
	results := func(name, help string, values ...string) *prometheus.CounterVec {
		m := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
		r.MustRegister(m)
		for _, v := range values {
			m.WithLabelValues(v)
		}
		return m
	}
	m := &metrics{
		passes:        results("firn_compactor_passes_total", "Passes of the compactor by result.", "done", "failed"),
		seals:         results("firn_compactor_seals_total", "Segments by result: done, failed, or conflict (the stream changed meanwhile).", "done", "failed", "conflict"),
		sealedBytes:   counter("firn_compactor_sealed_bytes_total", "Stored bytes sealed."),
		sealedObjects: counter("firn_compactor_sealed_objects_total", "Objects that sealed segments were written to."),
		objectBytes:   counter("firn_compactor_sealed_object_bytes_total", "Size of the objects that sealed bytes became."),
		evictions:     counter("firn_compactor_evictions_total", "Segments whose hot copy was given up."),
		evictedBytes:  counter("firn_compactor_evicted_bytes_total", "Stored bytes whose hot copy was given up."),
		trimmed:       counter("firn_compactor_trimmed_segments_total", "Segments let go of: below a snapshot, or of a deleted stream."),
		swept:         counter("firn_compactor_swept_objects_total", "Objects removed from the store."),
		reclaims:      counter("firn_compactor_reclaims_total", "Compactions that gave evicted space back to the disk."),
	}
	m.rewrites = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "firn_compactor_rewrites_total",
		Help: "Segments written again by reason (merge: of small ones; copy: out of an object of which little is needed; repair: from the hot copy) and result.",
	}, []string{"reason", "result"})
	m.rewrittenBytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "firn_compactor_rewritten_bytes_total", Help: "Stored bytes written again by reason.",
	}, []string{"reason"})
	for _, reason := range []string{reasonMerge, reasonCopy, reasonRepair} {
		m.rewrittenBytes.WithLabelValues(reason)
		for _, v := range []string{"done", "failed", "conflict"} {
			m.rewrites.WithLabelValues(reason, v)
		}
	}
	r.MustRegister(m.rewrites, m.rewrittenBytes)
	m.sealSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "firn_compactor_seal_seconds", Help: "Time to build, upload and commit one object of segments.",
		Buckets:                     prometheus.ExponentialBuckets(0.005, 2, 14),
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
	})
	r.MustRegister(m.sealSeconds, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_compactor_stuck_streams", Help: "Streams that could not be sealed, evicted or trimmed at the last try.",
	}, func() float64 { return float64(c.Status().Stuck) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "firn_compactor_waiting_objects", Help: "Objects that are due for removal and wait for a copy of the catalog that knows it.",
		}, func() float64 { return float64(c.waiting.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "firn_compactor_trouble_seconds", Help: "How long passes have been failing, 0 when they do not.",
		}, func() float64 {
			if s := c.Status(); s.Err != nil {
				return time.Since(s.Since).Seconds()
			}
			return 0
		}))
	return m
}
