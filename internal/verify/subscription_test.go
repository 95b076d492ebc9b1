package verify_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/verify"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// subscribed returns the disk of a store with a subscription of each type, links and
// keys, with their numbers.
func subscribed(t *testing.T) (fs *vfs.MemFS, numbers []uint64) {
	t.Helper()
	fs, ctx := vfs.NewCrashableMem(), context.Background()
	s, err := hot.Open("hot", hot.Options{FS: fs, MemTableBytes: 1 << 20, Fatal: func(m string) { panic(m) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := s.Create(ctx, hot.Create{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: "a"}, ContentType: "text/plain", Mode: stream.Bytes, Payload: []byte("hello"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []hot.Subscription{
		{Scope: "default", ID: "hook", URL: "https://a.example", Pattern: "*", LeaseTTL: 1000},
		{ID: "pull", Pull: true, WakeStream: c.Record.Name, Pattern: "*/*", LeaseTTL: 1000},
	} {
		r, err := s.PutSubscription(ctx, hot.PutSubscription{
			Subscription: sub, Links: []hot.Link{{Name: c.Record.Name, Cursor: hot.CursorAt(c.Record, 5)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, r.Subscription.Number)
	}
	for i := range uint64(2) {
		if err := s.AddSigningKey(ctx, hot.AddSigningKey{Replaces: i, Seed: make([]byte, 32)}); err != nil {
			t.Fatal(err)
		}
	}
	return fs, numbers
}

// check returns the problems of a store after a change of its keys.
func check(t *testing.T, fs *vfs.MemFS, change func(key, value []byte, b *pebble.Batch) error) string {
	t.Helper()
	db, err := pebble.Open("hot", &pebble.Options{FS: fs.CrashClone(vfs.CrashCloneCfg{}), FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := db.NewBatch()
	for ok := it.First(); ok; ok = it.Next() {
		if err := change(it.Key(), it.Value(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(nil); err != nil {
		t.Fatal(err)
	}
	c, err := verify.Load(db, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, p := range c.Check() {
		text.WriteString(p.String() + "\n")
	}
	return text.String()
}

func TestDamagedSubscriptions(t *testing.T) {
	fs, numbers := subscribed(t)
	// of changes the first key of a kind that contains text.
	of := func(kind byte, text string, change func(key, value []byte, b *pebble.Batch) error) func([]byte, []byte, *pebble.Batch) error {
		found := false
		return func(key, value []byte, b *pebble.Batch) error {
			if found || key[0] != kind || !strings.Contains(string(key), text) {
				return nil
			}
			found = true
			return change(key, append([]byte{}, value...), b)
		}
	}
	remove := func(key, _ []byte, b *pebble.Batch) error { return b.Delete(key, nil) }
	longer := func(key, value []byte, b *pebble.Batch) error { return b.Set(key, append(value, 0), nil) }
	for name, tt := range map[string]struct {
		change func(key, value []byte, b *pebble.Batch) error
		want   string
	}{
		"nothing":             {func(_, _ []byte, _ *pebble.Batch) error { return nil }, ""},
		"a subscription gone": {of('w', "hook", remove), "1 links are left"},
		"a longer record":     {of('w', "pull", longer), "does not have the form"},
		"a longer link":       {of('l', "", longer), "does not have the form"},
		"a longer key":        {of('k', "", longer), "does not have the form"},
		"the active key gone": {of('k', "\x02", remove), "0 signing keys are active"},
		"a second active key": {of('k', "\x02", func(key, value []byte, b *pebble.Batch) error {
			key = append([]byte{}, key...)
			key[8] = 3
			return b.Set(key, value, nil)
		}), "2 signing keys are active"},
		"a link past the tail": {of('l', "", func(key, value []byte, b *pebble.Batch) error { value[len(value)-1] = 6; return b.Set(key, value, nil) }), "is linked to subscription"},
		"an event without a wake": {of('w', "pull", func(key, value []byte, b *pebble.Batch) error {
			value[len(value)-1] = 1
			return b.Set(key, value, nil)
		}), "has a lease without a wake"},
		"an event of a webhook": {of('w', "hook", func(key, value []byte, b *pebble.Batch) error {
			value[len(value)-1] = 1
			return b.Set(key, value, nil)
		}), "has a lease without a wake"},
		"one number for two": {of('w', "hook", func(key, value []byte, b *pebble.Batch) error {
			return b.Set(append(append([]byte{}, key...), 'x'), value, nil)
		}), "have the number"},
	} {
		got := check(t, fs, tt.change)
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: problems %q, want %q", name, got, tt.want)
		}
	}
	if numbers[0] == numbers[1] {
		t.Errorf("both have the number %d", numbers[0])
	}
}
