package stream

import (
	"fmt"
	"mime"
	"strings"
)

// DefaultContentType is what a stream has when its creator names none (B§5.1).
const DefaultContentType = "application/octet-stream"

// MaxContentType bounds a content type, in bytes.
const MaxContentType = 1024

// Mode says how a stream's bytes fall into messages. It is decided once, from
// the content type at creation, and stored: later releases never derive it anew.
type Mode uint8

const (
	// Bytes has no messages: every position is a boundary.
	Bytes Mode = 1
	// JSON stores each message as its own text followed by one LF, so that the
	// stored bytes are NDJSON (B§9.1). A position is a boundary if it is 0 or
	// the byte before it is that LF.
	JSON Mode = 2
)

// String returns the name used in logs, listings and object descriptors.
func (m Mode) String() string {
	switch m {
	case Bytes:
		return "bytes"
	case JSON:
		return "json"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// ParseMode is the inverse of [Mode.String].
func ParseMode(s string) (Mode, error) {
	switch s {
	case "bytes":
		return Bytes, nil
	case "json":
		return JSON, nil
	}
	return 0, fmt.Errorf("unknown content mode %q", s)
}

// ModeOf returns the mode of a content type: JSON for application/json with any
// parameters and in any letter case, Bytes for every other type (B§9).
func ModeOf(contentType string) Mode {
	if mediaType(contentType) == "application/json" {
		return JSON
	}
	return Bytes
}

// CheckContentType returns [ErrContentTypeMalformed] unless s is a media type of
// the form type/subtype with optional parameters, in at most [MaxContentType] bytes.
func CheckContentType(s string) error {
	if s == "" || len(s) > MaxContentType {
		return ErrContentTypeMalformed
	}
	for i := range len(s) {
		if s[i] < 0x20 && s[i] != '\t' || s[i] >= 0x7f {
			return ErrContentTypeMalformed
		}
	}
	t, _, err := mime.ParseMediaType(s)
	if err != nil {
		return ErrContentTypeMalformed
	}
	major, minor, ok := strings.Cut(t, "/")
	if !ok || major == "" || minor == "" {
		return ErrContentTypeMalformed
	}
	return nil
}

// SameType reports whether two content types name the same media type. Letter
// case and parameters do not matter (B§5.1, B§5.2).
func SameType(a, b string) bool {
	return a == b || mediaType(a) == mediaType(b)
}

// IsText reports whether events of a stream of this type travel over SSE as
// text; all others are base64 (B§5.8).
func IsText(contentType string) bool {
	t := mediaType(contentType)
	return t == "application/json" || strings.HasPrefix(t, "text/")
}

func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}
