package blob

import (
	"fmt"
	"unicode/utf8"
)

// MaxKey bounds a key, in bytes. A store that keeps keys below a prefix bounds
// both together.
const MaxKey = 1024

// CheckKey returns [ErrKey] unless key is 1 to [MaxKey] bytes of UTF-8 without
// control characters and without the two code points that XML cannot carry.
// Everything else is a key: slashes at any place, "..", any letter case.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: %d bytes, want 1 to %d", ErrKey, len(key), MaxKey)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: %q is not UTF-8", ErrKey, key)
	}
	for _, r := range key {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
			return fmt.Errorf("%w: %q holds a control character", ErrKey, key)
		}
	}
	return nil
}

// CheckPut checks the arguments of a Put before anything is sent. Errors: [ErrKey],
// [ErrPrecondition] for two conditions at once.
func CheckPut(key string, opts PutOptions) error {
	if opts.IfNoneMatch && opts.IfMatch != "" {
		return fmt.Errorf("%w: IfNoneMatch and IfMatch exclude each other", ErrPrecondition)
	}
	return CheckKey(key)
}
