package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is a size in bytes, never negative when it comes from [ParseBytes].
type Bytes int64

// Binary sizes.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
	PiB Bytes = 1 << 50
)

// sizeUnit is a unit of [Bytes] as it is written.
type sizeUnit struct {
	name string
	size Bytes
}

// sizeUnits in the order in which [Bytes.String] tries the binary ones.
var sizeUnits = []sizeUnit{
	{"PiB", PiB}, {"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
	{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

// ParseBytes reads a whole number of bytes (1_000_000), optionally with a decimal
// (kB, MB, GB, TB, PB) or binary unit (KiB, MiB, GiB, TiB, PiB). The case of the
// unit does not matter. Units that mean either, such as M, are refused.
func ParseBytes(s string) (Bytes, error) {
	end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '_' })
	if end < 0 {
		end = len(s)
	}
	digits, unit := s[:end], strings.TrimSpace(s[end:])
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%q is negative, a size is not", s)
	}
	if strings.HasPrefix(unit, ".") || strings.HasPrefix(unit, ",") {
		return 0, fmt.Errorf("%q is not a whole number: use a smaller unit, as in 1536MiB for 1.5GiB", s)
	}
	if strings.Trim(digits, "_") == "" {
		return 0, fmt.Errorf("%q is not a size: write a number and a unit, as in 64MiB", s)
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(digits, "_", ""), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is too large", s)
	}
	size, err := parseSizeUnit(s, digits, unit)
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64/int64(size) {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return Bytes(n) * size, nil
}

func parseSizeUnit(s, digits, unit string) (Bytes, error) {
	if unit == "" {
		return 1, nil
	}
	for _, u := range sizeUnits {
		if strings.EqualFold(u.name, unit) {
			return u.size, nil
		}
	}
	for _, u := range sizeUnits {
		if letter := u.name[:1]; u.size != 1 && (strings.EqualFold(unit, letter) || strings.EqualFold(unit, letter+"i")) {
			up := strings.ToUpper(letter)
			return 0, fmt.Errorf("%q has no full unit: write %s%siB (steps of 1024) or %s%sB (of 1000)", s, digits, up, digits, up)
		}
	}
	return 0, fmt.Errorf("%q has no unit of size: use KiB, MiB, GiB or TiB", s)
}

// String is the shortest exact spelling in binary units; sizes that are no
// multiple of 1 KiB are plain numbers. [ParseBytes] reads it back.
func (b Bytes) String() string {
	for _, u := range sizeUnits {
		if strings.HasSuffix(u.name, "iB") && b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// UnmarshalText is [ParseBytes].
func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = ParseBytes(string(text))
	return err
}
