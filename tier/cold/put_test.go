package cold_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier/cold"
)

func TestPutSegmentBelievesOnlyWhatItReadsBack(t *testing.T) {
	for what, f := range map[string]fault.Fault{
		"refused":                 {Op: fault.Put, Kind: fault.Before},
		"written, reply lost":     {Op: fault.Put, Kind: fault.After},
		"denied":                  {Op: fault.Put, Kind: fault.Before, Err: blob.ErrDenied},
		"acknowledged, not there": {Op: fault.Get, Kind: fault.Hide},
		"no answer to the look":   {Op: fault.Get, Kind: fault.Before},
		"tail cut short":          {Op: fault.Get, Kind: fault.Short, At: 10},
		"tail flipped":            {Op: fault.Get, Kind: fault.Flip, At: 100},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, cold.Options{})
			r.faults.Script(f)
			sealed, _ := seal(t, 0, 10*frameBytes)
			if _, err := r.PutSegment(context.Background(), "k", sealed); !errors.Is(err, stream.ErrColdUnavailable) {
				t.Errorf("put gave %v, want ErrColdUnavailable", err)
			}
		})
	}
}

// liar acknowledges a put of something and keeps something else.
type liar struct {
	blob.Store
	keeps func([]byte) []byte
}

func (l liar) Put(ctx context.Context, key string, body blob.Body, o blob.PutOptions) (blob.Info, error) {
	data := make([]byte, body.Size())
	if _, err := body.ReadAt(data, 0); err != nil {
		return blob.Info{}, err
	}
	return l.Store.Put(ctx, key, bytes.NewReader(l.keeps(data)), o)
}

func TestPutSegmentNoticesAStoreThatLies(t *testing.T) {
	other, _ := seal(t, 4096, 10*frameBytes)
	for what, keeps := range map[string]func([]byte) []byte{
		"nothing":                func([]byte) []byte { return nil },
		"a byte less":            func(d []byte) []byte { return d[:len(d)-1] },
		"a byte more":            func(d []byte) []byte { return append(d, 0) },
		"another segment":        func([]byte) []byte { return slices.Clone(other.Bytes) },
		"a flip in the tail":     func(d []byte) []byte { d[len(d)-20] ^= 1; return d },
		"zeros of the same size": func(d []byte) []byte { return make([]byte, len(d)) },
	} {
		r := newRig(t, cold.Options{})
		s := open(t, liar{r.blobs, keeps}, cold.Options{})
		sealed, _ := seal(t, 0, 10*frameBytes)
		if _, err := s.PutSegment(context.Background(), "k", sealed); !errors.Is(err, stream.ErrColdUnavailable) {
			t.Errorf("%s: put gave %v, want ErrColdUnavailable", what, err)
		}
	}
}

func TestPutSegmentReadsTheTailBackAtOnce(t *testing.T) {
	r := newRig(t, cold.Options{})
	const n = 2000 * frameBytes // the descriptor is longer than the hint
	n1 := r.gets(func() {
		ref, content := r.put(t, 0, n)
		got, err := r.all(ref)
		equal(t, got, err, content)
	})
	if n1 != 2 {
		t.Errorf("put and read took %d GETs, want 2: one for the tail, one for the content", n1)
	}
}

func TestKeysAreNeverUsedTwice(t *testing.T) {
	r := newRig(t, cold.Options{})
	a, _ := seal(t, 0, frameBytes)
	b, _ := seal(t, frameBytes, frameBytes)
	if _, err := r.PutSegment(context.Background(), "k", a); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PutSegment(context.Background(), "k", b); !errors.Is(err, blob.ErrExists) {
		t.Errorf("second put under one key gave %v, want ErrExists", err)
	}
	a.Name("k")
	if _, err := r.all(a.Refs[0]); err != nil {
		t.Errorf("the first object is damaged: %v", err)
	}
}

func TestStoreWithoutConditionsIsPutTo(t *testing.T) {
	r := newRig(t, cold.Options{})
	s := open(t, unconditional{r.blobs}, cold.Options{})
	sealed, content := seal(t, 0, frameBytes)
	if _, err := s.PutSegment(context.Background(), "k", sealed); err != nil {
		t.Fatal(err)
	}
	sealed.Name("k")
	got, err := s.Read(context.Background(), nil, sealed.Refs[0], 0, frameBytes)
	equal(t, got, err, content)
}

func TestDeleteTellsWhatIsConfirmed(t *testing.T) {
	ctx := context.Background()
	keys := []string{"a", "b", "c"}
	for what, tt := range map[string]struct {
		err  error
		gone []string
	}{
		"all":               {nil, keys},
		"one failed":        {&blob.DeleteError{Failed: map[string]error{"b": blob.ErrUnavailable}}, []string{"a", "c"}},
		"all failed":        {blob.DeleteFailed(keys, blob.ErrDenied), nil},
		"nothing is known":  {blob.ErrUnavailable, nil},
		"context has ended": {context.Canceled, nil},
	} {
		s := open(t, deleter{err: tt.err}, cold.Options{})
		gone, err := s.Delete(ctx, keys)
		if !slices.Equal(gone, tt.gone) || (err == nil) != (tt.err == nil) || err != nil && !errors.Is(err, stream.ErrColdUnavailable) {
			t.Errorf("%s: %q, %v; want %q", what, gone, err, tt.gone)
		}
	}
}

func TestDeleteOfNothingAsksNobody(t *testing.T) {
	s := open(t, deleter{err: context.Canceled}, cold.Options{})
	if gone, err := s.Delete(context.Background(), nil); len(gone) > 0 || err != nil {
		t.Errorf("%q, %v", gone, err)
	}
}

// deleter answers every Delete alike.
type deleter struct {
	blob.Store
	err error
}

func (d deleter) Delete(context.Context, ...string) error { return d.err }

func TestSnapshotIsReadBack(t *testing.T) {
	ctx := context.Background()
	for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 200_000} {
		r := newRig(t, cold.Options{})
		body := bytes.Repeat([]byte{'x'}, size)
		var err error
		if n := r.gets(func() { err = r.PutSnapshot(ctx, "k", bytes.NewReader(body), int64(size)) }); n != 1 || err != nil {
			t.Errorf("%d bytes: %d GETs, %v", size, n, err)
		}
	}
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	for what, f := range map[string]fault.Fault{
		"not there":   {Kind: fault.Hide},
		"shorter":     {Kind: fault.Short, At: 100},
		"another end": {Kind: fault.Flip, At: 60_000},
	} {
		r := newRig(t, cold.Options{})
		f.Op = fault.Get
		r.faults.Script(f)
		if err := r.PutSnapshot(ctx, "k", bytes.NewReader(body), int64(len(body))); !errors.Is(err, stream.ErrColdUnavailable) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
