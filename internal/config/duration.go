package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a span of time, never negative when it comes from [ParseDuration].
type Duration time.Duration

// Forever is longer than every other duration. Only settings that say so take it.
const Forever Duration = math.MaxInt64

// Spans that Go's own durations have no unit for. A day is always 24 hours.
const (
	Day  = Duration(24 * time.Hour)
	Week = 7 * Day
)

// ParseDuration reads Go durations (90s, 1h30m) with two further units before
// the others, weeks and days (2w, 7d, 1d12h), and the word forever.
func ParseDuration(s string) (Duration, error) {
	if s == "forever" {
		return Forever, nil
	}
	if strings.HasPrefix(s, "-") {
		return 0, fmt.Errorf("%q is negative, a duration is not", s)
	}
	rest, sum := s, Duration(0)
	for _, u := range []struct {
		letter string
		span   Duration
	}{{"w", Week}, {"d", Day}} {
		digits, after, ok := strings.Cut(rest, u.letter)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration: write it as in 90s, 1h30m or 7d", s)
		}
		if n > uint64((Forever-sum)/u.span) {
			return 0, fmt.Errorf("%q is too long", s)
		}
		rest, sum = after, sum+Duration(n)*u.span
	}
	if rest == "" && s != "" {
		return sum, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		if _, bare := strconv.ParseFloat(rest, 64); bare == nil {
			return 0, fmt.Errorf("%q has no unit: write %ss for seconds, %sm for minutes, %sh for hours or %sd for days", s, rest, rest, rest, rest)
		}
		return 0, fmt.Errorf("%q is not a duration: write it as in 90s, 1h30m or 7d", s)
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is not a duration: write it as in 90s, 1h30m or 7d", s)
	}
	if Duration(d) >= Forever-sum {
		return 0, fmt.Errorf("%q is too long", s)
	}
	return sum + Duration(d), nil
}

// String is a spelling that [ParseDuration] reads back: whole days are days, all
// else is without the zero parts that Go prints (1h, not 1h0m0s).
func (d Duration) String() string {
	if d == Forever {
		return "forever"
	}
	if d != 0 && d%Day == 0 {
		return strconv.FormatInt(int64(d/Day), 10) + "d"
	}
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// UnmarshalText is [ParseDuration].
func (d *Duration) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDuration(string(text))
	return err
}
