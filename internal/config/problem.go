package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInvalid: the configuration cannot be used. The error is a [Problems].
var ErrInvalid = errors.New("invalid configuration")

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	// Paths are the settings involved, the one to blame first. There is none if
	// the problem is a source as a whole.
	Paths []string
	// Origin is where the value came from, empty if that is not known.
	Origin string
	// Message says what is wrong and what to do.
	Message string
}

// String is the problem in one line.
func (p Problem) String() string {
	var parts []string
	if p.Origin != "" {
		parts = append(parts, p.Origin)
	}
	if len(p.Paths) > 0 {
		parts = append(parts, p.Paths[0])
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Problems is everything that is wrong with a configuration, one line each. It is
// an [ErrInvalid].
type Problems []Problem

// Error lists the problems, one line each.
func (p Problems) Error() string {
	if len(p) == 1 {
		return fmt.Sprintf("%v: %v", ErrInvalid, p[0])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %d problems:", ErrInvalid, len(p))
	for _, problem := range p {
		b.WriteString("\n  " + problem.String())
	}
	return b.String()
}

// Is makes every Problems an [ErrInvalid].
func (p Problems) Is(target error) bool { return target == ErrInvalid }

// err returns p, or a nil error if there are no problems.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}
