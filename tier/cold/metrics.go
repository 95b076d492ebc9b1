package cold

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	hits       prometheus.Counter
	misses     prometheus.Counter
	fetched    prometheus.Counter
	prefetches prometheus.Counter
	corrupt    prometheus.Counter
	missing    prometheus.Counter
}

func newMetrics(r prometheus.Registerer, s *Store) *metrics {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	m := &metrics{
		hits:       counter("firn_cache_hits_total", "Frames of cold segments found in the cache or on their way."),
		misses:     counter("firn_cache_misses_total", "Frames of cold segments that had to be fetched."),
		fetched:    counter("firn_cold_fetched_bytes_total", "Compressed bytes of cold segments fetched."),
		prefetches: counter("firn_cold_prefetches_total", "Times that frames were fetched ahead of a reader."),
		corrupt:    counter("firn_cold_corrupt_total", "Frames and snapshots that failed their checks."),
		missing:    counter("firn_cold_missing_total", "Times that the store did not have an object that the catalog names."),
	}
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "firn_cache_bytes", Help: "Memory taken by decoded frames.",
	}, func() float64 { return float64(s.cache.bytes()) }))
	return m
}
