package hot

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the package's own; Pebble's are read when they are scraped.
type metrics struct {
	appends          prometheus.Counter
	appendedBytes    prometheus.Counter
	batchCommands    prometheus.Histogram
	batchBytes       prometheus.Histogram
	commitSeconds    prometheus.Histogram
	backgroundErrors prometheus.Counter
	corruptions      prometheus.Counter
	stalls           prometheus.Counter
	refused          uint64 // atomic
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
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: buckets,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
		})
		r.MustRegister(h)
		return h
	}
	m := &metrics{
		appends:          counter("firn_hot_appends_total", "Appends committed."),
		appendedBytes:    counter("firn_hot_appended_bytes_total", "Stored bytes committed by appends and creates."),
		batchCommands:    histogram("firn_hot_batch_commands", "Commands in one batch of the committer.", prometheus.ExponentialBuckets(1, 2, 13)),
		batchBytes:       histogram("firn_hot_batch_bytes", "Size of one batch of the committer.", prometheus.ExponentialBuckets(256, 4, 10)),
		commitSeconds:    histogram("firn_hot_commit_seconds", "Time to apply, sync and publish one batch.", prometheus.ExponentialBuckets(0.0001, 2, 16)),
		backgroundErrors: counter("firn_hot_background_errors_total", "Failed flushes and compactions of the hot tier."),
		corruptions:      counter("firn_hot_corruptions_total", "Corrupt blocks found by the hot tier."),
		stalls:           counter("firn_hot_write_stalls_total", "Times that writes had to wait for flushes or compactions."),
	}
	r.MustRegister(&collector{s: s, m: m})
	return m
}

func (m *metrics) observe(batch []*request, bytes int, d time.Duration) {
	m.batchCommands.Observe(float64(len(batch)))
	m.batchBytes.Observe(float64(bytes))
	m.commitSeconds.Observe(d.Seconds())
	appends, size := 0, 0
	for _, r := range batch {
		if r.err == nil {
			size += payload(r)
			if _, ok := r.command.(*Append); ok {
				appends++
			}
		}
	}
	m.appends.Add(float64(appends))
	m.appendedBytes.Add(float64(size))
}

// collector reads gauges, and Pebble's figures, at scrape time.
type collector struct {
	s *Store
	m *metrics
}

var (
	descBytes     = prometheus.NewDesc("firn_hot_bytes", "Stored bytes with a hot copy, by state: unsealed (no cold copy) or sealed (both).", []string{"state"}, nil)
	descStreams   = prometheus.NewDesc("firn_streams", "Streams that clients can use.", nil, nil)
	descQueue     = prometheus.NewDesc("firn_hot_queue_commands", "Commands waiting for the committer.", nil, nil)
	descRefused   = prometheus.NewDesc("firn_hot_refused_appends_total", "Appends refused because the hot tier or its disk is full.", nil, nil)
	descOldest    = prometheus.NewDesc("firn_hot_oldest_unsealed_seconds", "Age of the oldest byte that has no cold copy.", nil, nil)
	descDisk      = prometheus.NewDesc("firn_hot_disk_bytes", "Size of the hot tier on disk, logs included.", nil, nil)
	descFree      = prometheus.NewDesc("firn_hot_disk_free_bytes", "Free space on the hot tier's disk.", nil, nil)
	descWAL       = prometheus.NewDesc("firn_pebble_wal_bytes", "Size of Pebble's live write-ahead log.", nil, nil)
	descMemtable  = prometheus.NewDesc("firn_pebble_memtable_bytes", "Size of Pebble's memtables.", nil, nil)
	descReadAmp   = prometheus.NewDesc("firn_pebble_read_amplification", "Sorted runs that a read may have to look at.", nil, nil)
	descDebt      = prometheus.NewDesc("firn_pebble_compaction_debt_bytes", "Bytes that Pebble estimates it still has to compact.", nil, nil)
	descCompacted = prometheus.NewDesc("firn_pebble_compactions_total", "Compactions done by Pebble.", nil, nil)
	descFlushes   = prometheus.NewDesc("firn_pebble_flushes_total", "Memtable flushes done by Pebble.", nil, nil)
	descLevel     = prometheus.NewDesc("firn_pebble_level_bytes", "Size of each level of Pebble.", []string{"level"}, nil)
)

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descBytes, descStreams, descQueue, descRefused, descOldest, descDisk, descFree,
		descWAL, descMemtable, descReadAmp, descDebt, descCompacted, descFlushes, descLevel,
	} {
		ch <- d
	}
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	st := *c.s.state.Load()
	gauge(descBytes, float64(st.Unsealed), "unsealed")
	gauge(descBytes, float64(st.Hot-st.Unsealed), "sealed")
	gauge(descStreams, float64(st.Streams))
	gauge(descQueue, float64(len(c.s.queue)))
	counter(descRefused, float64(atomic.LoadUint64(&c.m.refused)))
	gauge(descOldest, c.s.OldestUnsealed().Seconds())
	if u, err := c.s.opts.FS.GetDiskUsage(c.s.dir); err == nil {
		gauge(descFree, float64(u.AvailBytes))
	}
	m := c.s.db.Metrics()
	gauge(descDisk, float64(m.DiskSpaceUsage()))
	gauge(descWAL, float64(m.WAL.PhysicalSize))
	gauge(descMemtable, float64(m.MemTable.Size))
	gauge(descReadAmp, float64(m.ReadAmp()))
	gauge(descDebt, float64(m.Compact.EstimatedDebt))
	counter(descCompacted, float64(m.Compact.Count))
	counter(descFlushes, float64(m.Flush.Count))
	for i := range m.Levels {
		gauge(descLevel, float64(m.Levels[i].TablesSize), string('0'+rune(i)))
	}
}

// OldestUnsealed is the age of the oldest byte that has no cold copy.
func (s *Store) OldestUnsealed() time.Duration {
	v := s.View()
	defer v.Close()
	list, err := v.Unsealed(Aged{}, 1)
	if err != nil || len(list) == 0 {
		return 0
	}
	return time.Duration(max(int64(s.now())-int64(list[0].Ms), 0)) * time.Millisecond
}

// DiskBytes is the size of the hot tier on disk, logs included.
func (s *Store) DiskBytes() uint64 { return s.db.Metrics().DiskSpaceUsage() }
