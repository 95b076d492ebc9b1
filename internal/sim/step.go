package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// World is the first line of a script: what does not change during a run. Small sizes
// make few bytes have many edges. The zero value of each but Seed is a default.
type World struct {
	Seed uint64 `json:"seed"`
	// Bytes of a page, of a frame, of the cache of frames and of a segment.
	Page   int    `json:"page,omitempty"`
	Frame  int    `json:"frame,omitempty"`
	Cache  int    `json:"cache,omitempty"`
	Target uint64 `json:"target,omitempty"`
	// Budget is how many hot bytes the compactors leave in a pass.
	Budget uint64 `json:"budget,omitempty"`
	// Ahead is how many bytes are fetched ahead of readers.
	Ahead int `json:"ahead,omitempty"`
	// Backup keeps copies of the catalog in the bucket.
	Backup bool `json:"backup,omitempty"`
	// Forever keeps trimmed history for ever.
	Forever bool `json:"forever,omitempty"`
}

func (w World) withDefaults() World {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&w.Page, 128)
	def(&w.Frame, 48)
	def(&w.Cache, 4<<10)
	if w.Target == 0 {
		w.Target = 200
	}
	if w.Budget == 0 {
		w.Budget = 400
	}
	return w
}

// Step is one line of a script. What its fields mean depends on Do, see the functions
// in the table of steps. Positions are relative, so that a script stays sensible when
// steps are taken out of it.
type Step struct {
	Do string `json:"do"`
	// Stream is an id, or "bucket/id".
	Stream string `json:"stream,omitempty"`
	Source string `json:"source,omitempty"` // of a fork
	Bucket string `json:"bucket,omitempty"`

	// Size is of a payload, in bytes, about; Fill seeds it, and the look at some stream
	// that follows the step.
	Size int    `json:"size,omitempty"`
	Fill uint64 `json:"fill,omitempty"`
	// At is a place between the earliest position of a stream and its tail, in
	// thousandths, moved to the next message; Off is bytes that are added. Of grow, At is
	// how often.
	At  int `json:"at,omitempty"`
	Off int `json:"off,omitempty"`
	Sub int `json:"sub,omitempty"` // offset of a fork

	JSON     bool   `json:"json,omitempty"`
	Close    bool   `json:"close,omitempty"`
	Seq      string `json:"seq,omitempty"`
	Producer string `json:"producer,omitempty"`
	// Try is what a producer claims: the next sequence number (""), "again", "gap",
	// "epoch" (a new one) or "stale".
	Try string `json:"try,omitempty"`
	TTL uint64 `json:"ttl,omitempty"` // seconds
	For uint64 `json:"for,omitempty"` // seconds from now to the end of life

	// Who is a compactor, 0 or 1; Slot a sealing or a paused reader of it.
	Who     int      `json:"who,omitempty"`
	Slot    int      `json:"slot,omitempty"`
	Streams []string `json:"streams,omitempty"`

	// Tick advances the clock before the step, in ms.
	Tick   uint64  `json:"tick,omitempty"`
	Faults []Fault `json:"faults,omitempty"`
	Crash  *Crash  `json:"crash,omitempty"`
}

// Crash is a loss of power.
type Crash struct {
	// At counts the operations that change the file system from the beginning of the
	// step; if there are fewer, the crash comes after the answer.
	At int `json:"at"`
	// Unsynced is the probability, in percent, that a part of what was not synced is
	// kept.
	Unsynced int    `json:"unsynced,omitempty"`
	Seed     uint64 `json:"seed,omitempty"`
}

// Fault is trouble of the object store during one step.
type Fault struct {
	// Op is put, get, delete or list.
	Op string `json:"op"`
	// Kind is one of: before (it was not done), after (it was, the answer is lost),
	// stall, and of a get cut, short, flip, hide, and of a put late (not done now, but
	// after the failure), lost (said to be done, and is not) or torn (the same, in part).
	Kind string `json:"kind"`
	// Skip calls pass before it, then it happens Times times (0: once, -1: always).
	Skip  int `json:"skip,omitempty"`
	Times int `json:"times,omitempty"`
	// At is the byte of a cut, short, flip or torn object.
	At int64 `json:"at,omitempty"`
}

// Script is a history.
type Script struct {
	World World
	Steps []Step
}

// String prints a script, a line each.
func (s Script) String() string {
	var b strings.Builder
	b.WriteString(line(s.World))
	for _, step := range s.Steps {
		b.WriteString(line(step))
	}
	return b.String()
}

func line(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%%!(%v)\n", err)
	}
	return string(text) + "\n"
}

// Parse is the inverse of [Script.String].
func Parse(text []byte) (Script, error) {
	var s Script
	n := 0
	for l := range bytes.Lines(text) {
		n++
		d := json.NewDecoder(bytes.NewReader(l))
		d.DisallowUnknownFields()
		var err error
		if n == 1 {
			err = d.Decode(&s.World)
		} else {
			var step Step
			err = d.Decode(&step)
			s.Steps = append(s.Steps, step)
		}
		if err != nil {
			return Script{}, fmt.Errorf("parse line %d: %w", n, err)
		}
	}
	return s, nil
}
