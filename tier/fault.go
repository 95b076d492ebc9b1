package tier

// Fault plants a fault, so that a test can show that it would be found.
type Fault int

const (
	// NoFault is how the store runs.
	NoFault Fault = iota
	// FaultPublishFirst shows a snapshot before its blob is safe.
	FaultPublishFirst
	// FaultEdge leaves out of a page the first byte where two of its pieces meet.
	FaultEdge
	// FaultColdGap leaves cold bytes out of a bootstrap.
	FaultColdGap
)

// WithFault returns the options with a planted fault. Only tests want this.
func (o Options) WithFault(f Fault) Options {
	o.fault = f
	return o
}
