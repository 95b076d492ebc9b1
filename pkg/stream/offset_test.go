package stream_test

import (
	"errors"
	"strings"
	"testing"

	"firn/pkg/stream"
)

const maxField = 9_999_999_999_999_999

func TestOffsetRoundTrip(t *testing.T) {
	for o, want := range map[stream.Offset]string{
		{}:                                     "0000000000000000_0000000000000000",
		{Life: 1_700_000_000_000, Position: 7}: "0001700000000000_0000000000000007",
		{Life: maxField, Position: maxField}:   "9999999999999999_9999999999999999",
	} {
		if o.String() != want {
			t.Errorf("printed %s, want %s", o, want)
		}
		if got, err := stream.ParseOffset(want); got != o || err != nil {
			t.Errorf("ParseOffset(%s) = %v, %v", want, got, err)
		}
	}
}

// malformed are spellings that a parser which is too kind reads as zero.
var malformed = []string{
	"", "0", "0,1", "0 1", "-2", "--1", "NOW", "Now", " now", "now ", "now\n", "\x00", "+5", "1e3", "0x10",
	strings.Repeat("9", 300), "-1 ", " -1", "-01", "−1", "null", "undefined", "NaN", "Infinity", "_", "-1,now",
	"0000000000000000_000000000000000", "0000000000000000_00000000000000000", "000000000000000_0000000000000000",
	"0000000000000000-0000000000000000", "00000000000000000000000000000000_", "0000000000000000_+000000000000001",
	"000000000000000a_0000000000000000", "0000000000000000_-000000000000001", "0000000000000000_0000000000000000 ",
	"0000000000000000_0000000000000000,0000000000000000_0000000000000000", "００００００００_0000000000000000",
	"0000000000000000_000000000000000\x00", "0000000000000000%5f000000000000000",
}

func TestMalformedOffsets(t *testing.T) {
	for _, s := range malformed {
		if o, err := stream.ParseOffset(s); !errors.Is(err, stream.ErrOffsetMalformed) {
			t.Errorf("ParseOffset(%.50q) = %v, %v", s, o, err)
		}
		if o, err := stream.ParseStart(s); !errors.Is(err, stream.ErrOffsetMalformed) {
			t.Errorf("ParseStart(%.50q) = %v, %v", s, o, err)
		}
	}
	for _, s := range []string{"-1", "now"} {
		if _, err := stream.ParseOffset(s); !errors.Is(err, stream.ErrOffsetMalformed) {
			t.Errorf("ParseOffset(%q): %v; it is a start, not an offset", s, err)
		}
	}
}

func TestStartPosition(t *testing.T) {
	const life, tail = 1_700_000_000_000, 100
	at := func(life, pos uint64) string { return stream.Offset{Life: life, Position: pos}.String() }
	for _, c := range []struct {
		start string
		want  uint64
		err   error
	}{
		{"-1", 0, nil},
		{"now", tail, nil},
		{at(0, 0), 0, nil},
		{at(life, 0), 0, nil},
		{at(life, 1), 1, nil},
		{at(life, tail), tail, nil},
		{at(life, tail+1), 0, stream.ErrOffsetPastTail},
		{at(life, maxField), 0, stream.ErrOffsetPastTail},
		{at(life+1, 1), 0, stream.ErrOffsetOtherLife},
		{at(life-1, tail+1), 0, stream.ErrOffsetOtherLife},
		{at(0, 1), 0, stream.ErrOffsetOtherLife},
		{at(maxField, maxField), 0, stream.ErrOffsetPastTail},
	} {
		s, err := stream.ParseStart(c.start)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Position(life, tail); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s is position %d, %v; want %d, %v", c.start, got, err, c.want, c.err)
		}
	}
	if (stream.Start{}) != stream.Beginning || stream.At(stream.Offset{}) != stream.Beginning || !stream.Now.IsNow() || stream.Beginning.IsNow() {
		t.Error("starts are not what they are called")
	}
	if got, err := stream.Now.Position(life, 0); got != 0 || err != nil {
		t.Errorf("now of an empty stream is %d, %v", got, err)
	}
}

func FuzzParseOffset(f *testing.F) {
	for _, s := range malformed {
		f.Add(s)
	}
	f.Add("0001700000000000_0000000000000007")
	f.Fuzz(func(t *testing.T, s string) {
		if o, err := stream.ParseOffset(s); err == nil && o.String() != s {
			t.Fatalf("%q was read as %s", s, o)
		}
	})
}
