package bench

import (
	"io"
	"time"
)

// Options says what is measured. The zero Options starts a server of its own, which needs
// Program, and measures everything in the sizes of a small machine.
type Options struct {
	// Scenarios are the names of those to run; none is all.
	Scenarios []string

	// URL is a server that runs, and Fields are "Name: value" lines of every request to
	// it. Empty starts one.
	URL    string
	Fields []string
	// Flat: URL is where streams live, for servers without buckets. Otherwise it is the
	// root of a firn server.
	Flat bool
	// VS is where streams live on a second server, which takes turns with the first.
	VS string
	// ServerArgs are flags for the servers that are started, such as --cold=URL.
	ServerArgs []string
	// Cold is the object store of these servers, a URL; empty is files.
	Cold string

	// Rounds is how often each side is measured (default 3), Interval for how long
	// (default 1 s), Warm how long before that it is loaded without being measured
	// (default a fifth of Interval).
	Rounds         int
	Interval, Warm time.Duration
	// Full takes the sizes of the targets instead of those of a small machine.
	Full bool

	// Streams, Clients, Size (bytes of a record), Batch (records an append) and JSON, if
	// one of them is set, replace the cases of the append scenario by one of its own.
	Streams, Clients, Size, Batch int
	JSON                          bool
	// Readers and PerSecond are of the fan-out (default 1,000 and 20), ReadBytes of what
	// is read while hot, ColdBytes while cold or mixed, Many the streams of a start.
	Readers, PerSecond   int
	ReadBytes, ColdBytes int64
	Many                 int

	// Dir is where servers that are started keep their data, on the disk that is to be
	// measured (default the system's directory for temporary files). What is made there
	// is removed.
	Dir string
	// Program is the firn to start, and Environ its environment.
	Program string
	Environ []string
	// Progress takes a line for each step; nil discards.
	Progress io.Writer
}

func (o Options) withDefaults() Options {
	setDefault(&o.Rounds, 3)
	setDefault(&o.Interval, time.Second)
	setDefault(&o.Warm, o.Interval/5)
	setDefault(&o.Readers, 1000)
	setDefault(&o.PerSecond, 20)
	setDefault(&o.ReadBytes, 64<<20)
	if o.Full {
		setDefault(&o.ColdBytes, 1<<30)
		setDefault(&o.Many, 1_000_000)
	}
	setDefault(&o.ColdBytes, 64<<20)
	setDefault(&o.Many, 20_000)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

func setDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
