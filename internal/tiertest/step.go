package tiertest

import (
	"encoding/json"
	"fmt"

	"firn/pkg/stream"
)

// Step is one line of a script.
type Step struct {
	// Ops are issued at once.
	Ops []Op `json:"ops,omitempty"`
	// Crash, if there is one, happens while they run or right after them.
	Crash *Crash `json:"crash,omitempty"`
	// Restart closes the store and opens it again, after Ops.
	Restart bool `json:"restart,omitempty"`
	// Tick advances the clock, in ms, before Ops.
	Tick uint64 `json:"tick,omitempty"`
	// SealTarget is in force from the next restart or crash on, if it is not 0.
	SealTarget uint64 `json:"seal_target,omitempty"`
}

// Crash says when the disk is copied and what the copy has.
type Crash struct {
	// At counts the operations that change the file system, from the beginning of
	// the step; if there are fewer, the crash comes after the last command.
	At int `json:"at"`
	// Unsynced is the probability, in percent, that something not synced is kept.
	Unsynced int    `json:"unsynced"`
	Seed     uint64 `json:"seed"`
}

// Op is one command. Streams and objects are numbered by the Op that makes them.
type Op struct {
	Do     string `json:"do"`
	Bucket string `json:"bucket,omitempty"`
	ID     string `json:"id,omitempty"` // of the name to create
	New    int    `json:"new,omitempty"`
	Stream int    `json:"stream,omitempty"`
	Object int    `json:"object,omitempty"`

	// Size is of the payload in bytes, about, and Fill seeds it; or a limit.
	Size int    `json:"size,omitempty"`
	Fill uint64 `json:"fill,omitempty"`
	// From and To are positions; At is that of a fork, a snapshot or a cut.
	From     uint64 `json:"from,omitempty"`
	To       uint64 `json:"to,omitempty"`
	At       uint64 `json:"at,omitempty"`
	Anchored bool   `json:"anchored,omitempty"`

	JSON     bool             `json:"json,omitempty"`
	Type     string           `json:"type,omitempty"`
	Close    bool             `json:"close,omitempty"`
	Seq      *string          `json:"seq,omitempty"`
	Producer *stream.Producer `json:"producer,omitempty"`
	// Parts are what an object of several ranges holds. Those from From up to To are
	// named by this op.
	Parts []Part `json:"parts,omitempty"`

	// TTL is in seconds, -1 for a TTL of 0; Expires is in ms from the epoch.
	TTL     int64  `json:"ttl,omitempty"`
	Expires uint64 `json:"expires,omitempty"`
}

// Part is a range of a stream that goes into a pack.
type Part struct {
	Stream int    `json:"stream"`
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
}

// String is the step as a line of a script.
func (s Step) String() string {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Sprintf("%%!(%v)", err)
	}
	return string(b)
}

// Parse is the inverse of [Step.String].
func Parse(line []byte) (Step, error) {
	var s Step
	if err := json.Unmarshal(line, &s); err != nil {
		return Step{}, fmt.Errorf("parse step: %w", err)
	}
	return s, nil
}
