package blob_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"firn/internal/blob"
)

func TestResolve(t *testing.T) {
	const most = 1<<63 - 1
	for _, c := range []struct{ off, n, size, start, length int64 }{
		{0, -1, 0, 0, 0}, {0, 0, 0, 0, 0}, {0, -1, 10, 0, 10}, {9, -1, 10, 9, 1}, {9, 1, 10, 9, 1}, {0, 10, 10, 0, 10},
		{-3, -1, 10, 7, 3}, {-10, -1, 10, 0, 10}, {-11, -1, 10, 0, 10}, {-most, -1, 10, 0, 10}, {-1, -1, 0, 0, 0}, {0, most, most, 0, most},
	} {
		start, length, err := blob.Resolve(c.off, c.n, c.size)
		if err != nil || start != c.start || length != c.length {
			t.Errorf("[%d, +%d) of %d: %d, +%d, %v", c.off, c.n, c.size, start, length, err)
		}
	}
	for _, c := range [][3]int64{
		{10, -1, 10}, {10, 1, 10}, {9, 2, 10}, {0, 11, 10}, {0, 1, 0}, {1, -1, 0}, {1, 0, 10}, {-1, 0, 10}, {-1, 1, 10}, {-most - 1, -1, 10}, {1, most, 10},
	} {
		if _, _, err := blob.Resolve(c[0], c[1], c[2]); !errors.Is(err, blob.ErrRange) {
			t.Errorf("[%d, +%d) of %d: %v", c[0], c[1], c[2], err)
		}
	}
}

func TestExactly(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		r    io.Reader
		n    int64
		want string
		err  error
	}{
		{"all", strings.NewReader("0123"), 4, "0123", nil},
		{"nothing", strings.NewReader(""), 0, "", nil},
		{"short", strings.NewReader("012"), 4, "012", blob.ErrCorrupt},
		{"long", strings.NewReader("01234"), 4, "0123", blob.ErrCorrupt},
		{"something for nothing", strings.NewReader("0"), 0, "", blob.ErrCorrupt},
		{"broken in the middle", io.MultiReader(strings.NewReader("01"), iotest.ErrReader(broken)), 4, "01", broken},
		{"broken at the end", io.MultiReader(strings.NewReader("0123"), iotest.ErrReader(broken)), 4, "0123", broken},
		{"end with data", iotest.DataErrReader(strings.NewReader("0123")), 4, "0123", nil},
		{"early end with data", iotest.DataErrReader(strings.NewReader("012")), 4, "012", blob.ErrCorrupt},
		{"byte by byte", iotest.OneByteReader(strings.NewReader("0123")), 4, "0123", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := blob.Exactly(io.NopCloser(c.r), c.n)
			got, err := io.ReadAll(r)
			if string(got) != c.want || !errors.Is(err, c.err) {
				t.Errorf("read %q, %v", got, err)
			}
			again := io.EOF
			if c.err != nil {
				again = c.err
			}
			if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, again) {
				t.Errorf("read on: %d bytes, %v", n, err)
			}
		})
	}
}

// claim is a store whose Get gives one body, whatever the Info says.
type claim struct {
	blob.Store
	body io.Reader
	size int64
}

func (c claim) Get(context.Context, string, int64, int64) (io.ReadCloser, blob.Info, error) {
	return io.NopCloser(c.body), blob.Info{Size: c.size}, nil
}

func TestReadAll(t *testing.T) {
	for _, c := range []struct {
		body   string
		size   int64
		off, n int64
		err    error
	}{
		{"0123", 4, 0, -1, nil},
		{"23", 4, 2, 2, nil},
		{"", 4, 0, 0, nil},
		{"012", 4, 0, -1, blob.ErrCorrupt},
		{"", 4, 0, -1, blob.ErrCorrupt},
		{"01234", 4, 0, -1, blob.ErrCorrupt},
		{"23", 3, 2, 2, blob.ErrCorrupt},
	} {
		got, _, err := blob.ReadAll(t.Context(), claim{body: bytes.NewReader([]byte(c.body)), size: c.size}, "k", c.off, c.n)
		if !errors.Is(err, c.err) || err == nil && string(got) != c.body {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestErrors(t *testing.T) {
	ra := fmt.Errorf("get: %w", &blob.RetryAfterError{After: time.Second, Err: errors.New("slow down")})
	if !errors.Is(ra, blob.ErrUnavailable) || !blob.Retryable(ra) || !strings.Contains(ra.Error(), "slow down") {
		t.Errorf("retry-after error: %v", ra)
	}
	de := &blob.DeleteError{Failed: map[string]error{"a": blob.ErrDenied, "b": blob.ErrUnavailable, "c": blob.ErrDenied}}
	if !errors.Is(de, blob.ErrDenied) || !errors.Is(de, blob.ErrUnavailable) || errors.Is(de, blob.ErrCorrupt) {
		t.Errorf("delete error: %v", de)
	}
	if len(de.Unwrap()) != 2 || !strings.Contains(de.Error(), `3 objects not confirmed, such as "a"`) {
		t.Errorf("delete error: %v, %v", de, de.Unwrap())
	}
	if err := blob.DeleteFailed(nil, blob.ErrDenied); err != nil {
		t.Errorf("no key failed: %v", err)
	}
	if err := blob.DeleteFailed([]string{"a"}, nil); err != nil {
		t.Errorf("nothing failed: %v", err)
	}
	for _, err := range []error{nil, blob.ErrNotFound, blob.ErrExists, blob.ErrPrecondition, blob.ErrDenied, blob.ErrNotSupported, blob.ErrRange, blob.ErrKey, context.Canceled} {
		if blob.Retryable(err) {
			t.Errorf("%v is retried", err)
		}
	}
}
