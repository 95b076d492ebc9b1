package blob

import "fmt"

// Resolve turns the off and n of a Get into a range [start, start+length) of an
// object of the given size, by the rules of [Store]. Errors: [ErrRange].
func Resolve(off, n, size int64) (start, length int64, err error) {
	if err := CheckRange(off, n); err != nil {
		return 0, 0, err
	}
	switch {
	case off < 0:
		length = min(-off, size)
		return size - length, length, nil
	case n < 0 && (off < size || off == 0):
		return off, size - off, nil
	case n >= 0 && off <= size && n <= size-off:
		return off, n, nil
	}
	return 0, 0, fmt.Errorf("%w: offset %d length %d of %d bytes", ErrRange, off, n, size)
}

// CheckRange returns [ErrRange] for an off and n that no object could satisfy.
func CheckRange(off, n int64) error {
	switch {
	case off < 0 && (n >= 0 || off == -off):
		return fmt.Errorf("%w: a suffix has no length of its own", ErrRange)
	case n == 0 && off != 0, n > 0 && off+n < 0:
		return fmt.Errorf("%w: offset %d length %d", ErrRange, off, n)
	}
	return nil
}
