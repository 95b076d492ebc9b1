package cold_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/mem"
	"firn/pkg/stream"
	"firn/tier/cold"
)

// What a read finds missing or damaged is told each time, and logged once in a while.
func TestSuspectsAreTold(t *testing.T) {
	ctx := context.Background()
	objects, log, now := mem.New(mem.Options{}), new(bytes.Buffer), time.Unix(1, 0)
	s, err := cold.Open(objects, cold.Options{
		StoreID: "0123456789abcdef", ReadAhead: -1, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	told := make(chan string, 100)
	s.OnSuspect(func(key string) { told <- key })

	snapshot := s.SnapshotKey(name, 7, 0)
	gone, _ := (&rig{Store: s}).put(t, 0, frameBytes)
	broken, _ := (&rig{Store: s}).put(t, frameBytes, frameBytes)
	if _, err := s.Delete(ctx, []string{gone.Object}); err != nil {
		t.Fatal(err)
	}
	bad := make([]byte, 3*frameBytes)
	for _, key := range []string{broken.Object, snapshot} {
		if _, err := objects.Put(ctx, key, bytes.NewReader(bad), blob.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	reads := map[string]func() error{
		gone.Object: func() error { _, err := s.Read(ctx, nil, gone, gone.From, gone.To); return err },
		broken.Object: func() error {
			_, err := s.Read(ctx, nil, broken, broken.From, broken.To)
			return err
		},
		snapshot: func() error { _, err := s.OpenSnapshot(ctx, snapshot, int64(len(bad)), 1); return err },
	}
	for i := range 4 {
		if i == 3 {
			now = now.Add(10 * time.Minute)
		}
		for key, read := range reads {
			if read() == nil {
				t.Errorf("%s was read", key)
			}
			if got := <-told; got != key {
				t.Errorf("%s is suspected, want %s", got, key)
			}
		}
	}
	for key := range reads {
		n := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "level=ERROR") && strings.Contains(line, key) {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s was logged %d times, want 2", key, n)
		}
	}
}

func TestKeysTellTheirStream(t *testing.T) {
	s := open(t, mem.New(mem.Options{}), cold.Options{})
	for key, want := range map[string]stream.ID{
		s.SegmentKey(name, 7, stream.JSON, 0, 9): 7,
		s.SnapshotKey(name, 8, 5):                8,
		s.PackKey("b", stream.Bytes):             0,
		"owner":                                  0,
		"":                                       0,
	} {
		if id, ok := cold.StreamOf(key); id != want || ok != (want != 0) {
			t.Errorf("%q is of %v, %t", key, id, ok)
		}
		if is := cold.IsSnapshot(key); is != (want == 8) {
			t.Errorf("%q is a snapshot: %t", key, is)
		}
	}
}
