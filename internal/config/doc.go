// Package config is every setting of the server: declared once, in config.go.
//
// A setting is a field of [Config] with a comment and a tag. The comment is the
// manual; the tag holds the key, the default and the bounds. By reflection all else
// follows from it: its path in the file (hot.max_bytes), its environment variable
// (FIRN_HOT_MAX_BYTES), its flag (--hot.max-bytes), the checks, what `firn config`
// prints and docs/configuration.md. So the five cannot disagree.
//
// A server that would have to guess does not start: unknown keys, values without
// a unit and combinations that make no sense are errors, reported all at once,
// each with the place it came from and what to do about it.
//
// The package depends on no other one of the server. What a setting means is the
// business of the package that is given it.
//
//go:generate go run ./gendoc ../../docs/configuration.md
package config
