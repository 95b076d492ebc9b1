package cold

// Fault plants a fault, so that a test can show that it would be found.
type Fault int

const (
	// NoFault is how the store runs.
	NoFault Fault = iota
	// FaultUnverified takes a segment for written because the put said so.
	FaultUnverified
	// FaultUnchecked reads frames that fail their checks.
	FaultUnchecked
	// FaultCacheByOffset takes frames of one object for those of another.
	FaultCacheByOffset
	// FaultDeleteUnconfirmed takes objects for gone when the store does not say so.
	FaultDeleteUnconfirmed
	// FaultAnyFence takes the bucket over on an older copy of the data directory.
	FaultAnyFence
)

// WithFault returns the options with a planted fault. Only tests want this.
func (o Options) WithFault(f Fault) Options {
	o.fault = f
	return o
}
