package config

import "log/slog"

// masked stands for a secret wherever it would be shown.
const masked = "********"

// Secret is a value that is never printed, logged or marshalled: all of these show
// asterisks, or nothing where none is set. Convert it to a string to use it.
type Secret string

// String hides the secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return masked
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// MarshalText hides the secret from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue hides the secret from logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
