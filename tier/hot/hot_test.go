package hot_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

func open(t *testing.T, fs vfs.FS) *hot.Store {
	t.Helper()
	s, err := hot.Open("hot", hot.Options{FS: fs, MemTableBytes: 1 << 20, Fatal: func(m string) { panic(m) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s *hot.Store, id string) *hot.Record {
	t.Helper()
	name := stream.Name{Bucket: stream.DefaultBucket, ID: id}
	r, err := s.Create(context.Background(), hot.Create{Name: name, ContentType: "text/plain", Mode: stream.Bytes})
	if err != nil {
		t.Fatal(err)
	}
	return r.Record
}

func TestAppendsSurviveReopening(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	s := open(t, fs)
	rec := create(t, s, "a")
	p := &stream.Producer{ID: "p"}
	c := &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("hello"), Producer: p}
	if _, err := s.Append(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = open(t, fs)
	defer s.Close()
	v := s.View()
	rec, err := v.Stream(rec.Name)
	if err != nil {
		t.Fatal(err)
	}
	data, err := v.Data(nil, rec.ID, 1, rec.Tail)
	v.Close()
	if err != nil || string(data) != "ello" {
		t.Fatalf("read %q, %v", data, err)
	}
	again, err := s.Append(ctx, c)
	if err != nil || !again.Duplicate || again.Tail.Position != 5 {
		t.Fatalf("a retry after reopening gave %+v, %v; want a duplicate", again, err)
	}
}

func TestDeletedNameGetsANewLife(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	old := create(t, s, "a")
	if err := s.Delete(ctx, old.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, old.ID); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("second delete: %v", err)
	}
	if is := create(t, s, "a"); is.ID == old.ID || is.Life <= old.Life {
		t.Fatalf("the successor has incarnation %s and life %d, its predecessor %s and %d", is.ID, is.Life, old.ID, old.Life)
	}
}
