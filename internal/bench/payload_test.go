package bench_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"firn/internal/bench"
)

func TestPayload(t *testing.T) {
	for _, size := range []int{80, 100, 256} {
		body, stored := bench.PayloadRecords(true, 100, size)
		var records []json.RawMessage
		if err := json.Unmarshal(body, &records); err != nil || len(records) != 100 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		sum := 0
		for _, r := range records {
			if len(r) != size {
				t.Errorf("a record of %d bytes, want %d: %s", len(r), size, r)
			}
			sum += len(r) + 1 // stored with a line end
		}
		if int64(sum) != stored {
			t.Errorf("%d bytes are stored, not %d", sum, stored)
		}
	}
	body, stored := bench.PayloadRecords(false, 100, 256)
	if len(body) != 25600 || stored != 25600 {
		t.Errorf("%d bytes, %d stored", len(body), stored)
	}
}

// Every message is counted once: what is missing, doubled or out of order is an error.
func TestAudience(t *testing.T) {
	now := time.Now()
	m := func(n int) []byte { return bench.Message(now.Add(-time.Second), n) }
	array := func(messages ...[]byte) []byte {
		return slices.Concat([]byte("data:["), bytes.Join(messages, []byte(",")), []byte("]"))
	}
	for _, c := range []struct {
		name string
		text [][]byte
		ops  int64
		errs int64
	}{
		{"all, in one event and in two", [][]byte{array(m(0), m(1)), array(m(2))}, 3, 0},
		{"the last is missing", [][]byte{array(m(0), m(1))}, 2, 1},
		{"out of order", [][]byte{array(m(0), m(2)), array(m(1))}, 3, 1},
		{"doubled", [][]byte{array(m(0), m(1), m(1))}, 3, 1},
	} {
		s := bench.Audience(3, c.text...)
		if s.Ops != c.ops || s.Errors != c.errs || c.errs > 0 && s.Error == nil {
			t.Errorf("%s: %d messages, %d errors, %v", c.name, s.Ops, s.Errors, s.Error)
		}
		if p := s.Latency.At(1); p < 990*time.Millisecond {
			t.Errorf("%s: delivered after %s, sent a second before", c.name, p)
		}
	}
}
