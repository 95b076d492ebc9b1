package sim

import (
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// Planted is a fault of firn itself, so that a test can show that it would be found.
type Planted struct {
	Hot   hot.Fault
	Cold  cold.Fault
	Tier  tier.Fault
	World WorldFault
}

// WorldFault is a fault in how the parts are put together.
type WorldFault int

const (
	// NoFault is how a server does it.
	NoFault WorldFault = iota
	// FaultNoGrace removes objects at once.
	FaultNoGrace
	// FaultSameIncarnation gives a name that is made again the incarnation that it had.
	FaultSameIncarnation
)
