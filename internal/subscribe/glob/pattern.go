// Package glob matches stream paths with patterns: "*" is one segment of a path, "**"
// any number of them, none included (B§6.2).
//
// An [Index] finds the patterns that match a path by walking the path once. It does
// not look at patterns that leave the path's way, whatever their number.
package glob

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Bounds of a pattern. Each "**" may lengthen the way of a path through an index.
const (
	MaxBytes    = 1024
	MaxSegments = 32
	MaxDeep     = 4 // "**"
)

// ErrPattern: not a pattern.
var ErrPattern = errors.New("pattern must have 1 to 32 segments, at most four of them \"**\", in 1,024 bytes; a star stands alone in its segment")

const (
	one  = "*"
	deep = "**"
)

// Pattern is a parsed pattern. The zero Pattern matches nothing.
type Pattern struct{ segments []string }

// Parse reads a pattern. Errors: [ErrPattern].
func Parse(s string) (Pattern, error) {
	if s == "" || len(s) > MaxBytes || !utf8.ValidString(s) {
		return Pattern{}, ErrPattern
	}
	segments := strings.Split(s, "/")
	stars := 0
	for _, seg := range segments {
		switch {
		case seg == one:
		case seg == deep:
			stars++
		case seg == "", strings.ContainsAny(seg, "*\x00"), strings.Contains(seg, ".."):
			return Pattern{}, ErrPattern
		}
	}
	if len(segments) > MaxSegments || stars > MaxDeep {
		return Pattern{}, ErrPattern
	}
	return Pattern{segments}, nil
}

// Empty reports whether p is the zero Pattern.
func (p Pattern) Empty() bool { return len(p.segments) == 0 }

// Prefix is what every matching path begins with.
func (p Pattern) Prefix() string {
	for i, seg := range p.segments {
		if seg == deep {
			// Zero segments may follow, so not even the slash is sure.
			return strings.Join(p.segments[:i], "/")
		}
		if seg == one {
			return strings.Join(append(p.segments[:i:i], ""), "/")
		}
	}
	return strings.Join(p.segments, "/")
}

// Match reports whether a path matches.
func (p Pattern) Match(path string) bool {
	if p.Empty() {
		return false
	}
	// at[i]: what was read so far matches the first i segments.
	var at, next [MaxSegments + 1]bool
	at[0] = true
	p.skip(&at)
	for rest, more := path, true; more; {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		next = [MaxSegments + 1]bool{}
		for i, want := range p.segments {
			switch {
			case !at[i]:
			case want == deep:
				next[i] = true
			case want == one || want == seg:
				next[i+1] = true
			}
		}
		at = next
		p.skip(&at)
	}
	return at[len(p.segments)]
}

// skip lets every "**" stand for no segment.
func (p Pattern) skip(at *[MaxSegments + 1]bool) {
	for i, want := range p.segments {
		if at[i] && want == deep {
			at[i+1] = true
		}
	}
}
