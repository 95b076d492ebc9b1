package compactor

import "firn/tier/hot"

// The planner: pure functions of the policy and of figures from the catalog.

// surplus is how many hot bytes are over the budget.
func (p Policy) surplus(hotBytes uint64) uint64 {
	if hotBytes <= p.Budget {
		return 0
	}
	return hotBytes - p.Budget
}

// urgent reports whether appends would soon be refused: then MinAge yields.
func (p Policy) urgent(hotBytes uint64) bool {
	return hotBytes > p.Budget+(p.HardBytes-min(p.HardBytes, p.Budget))/2
}

// short is how many bytes must be sealed before the hot tier can be brought down
// to its budget: the surplus that has no cold copy yet.
func (p Policy) short(hotBytes, unsealed uint64) uint64 {
	surplus := p.surplus(hotBytes)
	if sealed := hotBytes - unsealed; surplus > sealed {
		return surplus - sealed
	}
	return 0
}

// aged reports whether bytes appended at since are old enough to be sealed.
func (p Policy) aged(since, now uint64) bool {
	return since+uint64(p.MaxAge.Milliseconds()) <= now
}

// companion reports whether bytes appended at since go along when older ones of other
// small streams are sealed.
func (p Policy) companion(since, now uint64) bool {
	return since+uint64(p.MaxAge.Milliseconds())/2 <= now
}

// evict chooses, from segments in the order of age, those whose hot copies are to
// be given up so that the surplus is gone.
func (p Policy) evict(held []hot.Held, hotBytes, now uint64) []hot.Held {
	surplus := p.surplus(hotBytes)
	young := now - min(now, uint64(p.MinAge.Milliseconds()))
	for i, h := range held {
		if surplus == 0 || h.Ms > young && !p.urgent(hotBytes) {
			return held[:i]
		}
		surplus -= min(surplus, h.To-h.From)
	}
	return held
}
