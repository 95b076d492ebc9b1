package api

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"time"
)

const (
	// cursorInterval and cursorEpoch are the protocol's defaults (B§10.1).
	cursorInterval = 20 * time.Second
	// maxCursorJitter is in seconds.
	maxCursorJitter = 3600
	// maxCursorDigits bounds what can be read and still be surpassed.
	maxCursorDigits = 18
)

var cursorEpoch = time.Date(2024, time.October, 9, 0, 0, 0, 0, time.UTC)

// intervalAt numbers the interval of a moment.
func intervalAt(now time.Time) int64 {
	return max(int64(now.Sub(cursorEpoch)/cursorInterval), 0)
}

// nextCursor returns the cursor of a live answer at a moment: the number of the
// current interval, or, when the client already has that one, a later number. So a
// cache never gives a client the same answer for ever (B§10.1). Anything but a number
// counts as no cursor; a number that cannot be surpassed is errCursor.
func nextCursor(now time.Time, sent string, random io.Reader) (int64, error) {
	current := intervalAt(now)
	had, ok, err := parseCursor(sent)
	if err != nil {
		return 0, err
	}
	if !ok || had < current {
		return current, nil
	}
	var b [8]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return 0, fmt.Errorf("draw cursor jitter: %w", err)
	}
	jitter := time.Duration(binary.BigEndian.Uint64(b[:])%maxCursorJitter+1) * time.Second
	return had + int64((jitter+cursorInterval-1)/cursorInterval), nil
}

func parseCursor(s string) (n int64, ok bool, err error) {
	if s == "" {
		return 0, false, nil
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false, nil
		}
	}
	if len(s) > maxCursorDigits {
		return 0, false, errCursor
	}
	n, err = strconv.ParseInt(s, 10, 64)
	return n, err == nil, err
}
