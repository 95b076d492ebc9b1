package stream_test

import (
	"errors"
	"testing"

	"firn/pkg/stream"
)

func TestFormerLives(t *testing.T) {
	l := stream.Lives{Life: 10}.Renew(20, 100).Renew(30, 70)
	for _, c := range []struct {
		o    stream.Offset
		want uint64
		err  error
	}{
		{stream.Offset{}, 0, nil},
		{stream.Offset{Life: 10, Position: 0}, 0, nil},
		{stream.Offset{Life: 10, Position: 70}, 70, nil},
		// The second loss went deeper than the first.
		{stream.Offset{Life: 10, Position: 71}, 0, stream.ErrOffsetOtherLife},
		{stream.Offset{Life: 20, Position: 70}, 70, nil},
		{stream.Offset{Life: 20, Position: 71}, 0, stream.ErrOffsetOtherLife},
		{stream.Offset{Life: 30, Position: 120}, 120, nil},
		{stream.Offset{Life: 30, Position: 121}, 0, stream.ErrOffsetPastTail},
		{stream.Offset{Life: 25, Position: 1}, 0, stream.ErrOffsetOtherLife},
	} {
		if got, err := l.Resolve(c.o, 120); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s is %d, %v; want %d, %v", c.o, got, err, c.want, c.err)
		}
		if got, err := l.Start(stream.At(c.o), 120); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("a start at %s is %d, %v; want %d, %v", c.o, got, err, c.want, c.err)
		}
	}
	if got, err := l.Start(stream.Now, 120); got != 120 || err != nil {
		t.Errorf("now is %d, %v", got, err)
	}
}

// A fork knows the former lives of its source up to where it left it.
func TestClippedLives(t *testing.T) {
	l := stream.Lives{Life: 1}.Renew(2, 50)
	f := l.Clip(20)
	if _, err := f.Resolve(stream.Offset{Life: 1, Position: 20}, 99); err != nil {
		t.Error(err)
	}
	if _, err := f.Resolve(stream.Offset{Life: 1, Position: 21}, 99); !errors.Is(err, stream.ErrOffsetOtherLife) {
		t.Errorf("beyond the fork: %v", err)
	}
	if _, err := l.Resolve(stream.Offset{Life: 1, Position: 50}, 99); err != nil {
		t.Errorf("the source's own lives have changed: %v", err)
	}
}

func TestOldestLifeIsDropped(t *testing.T) {
	l := stream.Lives{Life: 1}
	for i := range uint64(stream.MaxFormer) {
		l = l.Renew(i+2, 10)
	}
	if _, err := l.Resolve(stream.Offset{Life: 1, Position: 5}, 10); err != nil {
		t.Errorf("the oldest of %d: %v", stream.MaxFormer, err)
	}
	l = l.Renew(100, 10)
	if _, err := l.Resolve(stream.Offset{Life: 1, Position: 5}, 10); !errors.Is(err, stream.ErrOffsetOtherLife) {
		t.Errorf("one more: %v", err)
	}
	if _, err := l.Resolve(stream.Offset{Life: 2, Position: 5}, 10); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
