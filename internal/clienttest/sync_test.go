package clienttest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
	"firn/tier"
)

func publish(t *testing.T, s *client.Stream, at client.Offset, blob string) {
	t.Helper()
	if err := s.PublishSnapshot(t.Context(), at, "text/x-state", strings.NewReader(blob)); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshot(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	s := create(t, c, "log", asJSON, "")
	ctx := t.Context()
	if _, err := s.Snapshot(ctx); !errors.Is(err, stream.ErrSnapshotNotFound) {
		t.Errorf("no snapshot: %v", err)
	}
	first := add(t, s, asJSON, "1")
	second := add(t, s, asJSON, "2")
	if info, err := s.Head(ctx); err != nil || info.Snapshot != "" || info.Tail != second {
		t.Errorf("head: %+v, %v", info, err)
	}
	publish(t, s, first, "one")
	publish(t, s, second, strings.Repeat("two", 1<<20))
	sn, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer sn.Close()
	blob, err := io.ReadAll(sn)
	if len(blob) != 3<<20 || err != nil || sn.Offset != second || sn.ContentType != "text/x-state" {
		t.Errorf("got %d bytes of %s at %s, %v", len(blob), sn.ContentType, sn.Offset, err)
	}
	if info, err := s.Head(ctx); err != nil || info.Snapshot != second {
		t.Errorf("head: %+v, %v", info, err)
	}
	_, err = s.Get(ctx, client.Beginning)
	if trimmed, ok := errors.AsType[*client.TrimmedError](err); !ok || trimmed.Earliest != second {
		t.Errorf("below the snapshot: %v", err)
	}
	if err := s.DeleteSnapshot(ctx, first); !errors.Is(err, stream.ErrSnapshotNotFound) {
		t.Errorf("delete the old one: %v", err)
	}
	if err := s.DeleteSnapshot(ctx, second); !errors.Is(err, stream.ErrSnapshotLatest) {
		t.Errorf("delete the latest one: %v", err)
	}
	if _, ok := errors.AsType[*client.TrimmedError](s.PublishSnapshot(ctx, first, "", bytes.NewReader(nil))); !ok {
		t.Error("published below the earliest offset")
	}
}

func TestBootstrap(t *testing.T) {
	server := clienttest.Serve(t, clienttest.Options{})
	c := connect(t, server.URL(), client.Options{})
	ctx := t.Context()
	parts := func(s *client.Stream) (string, *client.Bootstrap) {
		t.Helper()
		b, err := s.Bootstrap(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		var all strings.Builder
		for {
			p, err := b.NextPart()
			if err == io.EOF {
				return all.String(), b
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(p)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "%s %s\n", p.ContentType, body)
		}
	}
	s := create(t, c, "log", asJSON, "")
	got, b := parts(s)
	same(t, got, asBinary+" \n")
	if b.Snapshot != client.Beginning || !b.UpToDate || b.Closed {
		t.Errorf("of an empty stream: %+v", b)
	}
	at := add(t, s, asJSON, `[1,[2,3]]`)
	publish(t, s, at, "=x\r\n--")
	add(t, s, asJSON, `[[4],"five"]`)
	tail, err := s.End(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got, b = parts(s)
	same(t, got, "text/x-state =x\r\n--\n"+asJSON+" [4]\n"+asJSON+" \"five\"\n")
	if b.Snapshot != at || b.Next != tail || !b.UpToDate || !b.Closed {
		t.Errorf("got %+v", b)
	}
	if _, err := c.Stream(stream.Name{Bucket: "demo", ID: "absent"}).Bootstrap(ctx); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("of no stream: %v", err)
	}
}

// state is what a program builds from steps: here, all text.
type state struct {
	text      strings.Builder
	snapshots int
	last      client.Step
}

func (s *state) apply(step client.Step) error {
	s.last = step
	if step.Snapshot == nil {
		s.text.Write(step.Data)
		return nil
	}
	s.snapshots++
	s.text.Reset()
	_, err := io.Copy(&s.text, step.Snapshot)
	return err
}

// A bootstrap that stops early, as bytes are cold or too many, is read on, and it all
// ends live.
func TestSyncPartial(t *testing.T) {
	server := clienttest.Serve(t, clienttest.Options{Tier: tier.Options{BootstrapBytes: 1 << 10, ReadBytes: 1 << 10}})
	c := connect(t, server.URL(), client.Options{})
	for _, contentType := range []string{asJSON, asBinary, asText} {
		for _, size := range []int{0, 900, 9000} {
			for _, cold := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d cold=%v", contentType, size, cold), func(t *testing.T) {
					n := stream.Name{Bucket: "demo", ID: strings.ReplaceAll(fmt.Sprint(contentType, size, cold), "/", "-")}
					s := create(t, c, n.ID, contentType, "")
					publish(t, s, add(t, s, contentType, "0"), "0\n")
					want := "0\n"
					for i := 0; len(want) < size; i++ {
						line := fmt.Sprintf("[\"%0100d\"]\n", i)
						want += line
						if contentType == asJSON {
							line = "[" + line + "]"
						}
						add(t, s, contentType, line)
					}
					if cold {
						if err := server.Evict(t.Context(), n); err != nil {
							t.Fatal(err)
						}
					}
					var st state
					live := 0
					for step, err := range s.Sync(deadline(t), "") {
						if err == nil {
							err = st.apply(step)
						}
						if err != nil {
							t.Fatal(err)
						}
						if step.UpToDate {
							same(t, st.text.String(), want)
							if live++; live == 3 {
								break
							}
							want += "1\n"
							add(t, s, contentType, map[bool]string{true: "1", false: "1\n"}[contentType == asJSON])
						}
					}
					if st.snapshots != 1 {
						t.Errorf("%d snapshots", st.snapshots)
					}
					// From where it was, without a bootstrap.
					again := state{}
					again.text.WriteString(want)
					want += "2\n"
					add(t, s, contentType, map[bool]string{true: "2", false: "2\n"}[contentType == asJSON])
					for step, err := range s.Sync(deadline(t), st.last.Next) {
						if err == nil {
							err = again.apply(step)
						}
						if err != nil {
							t.Fatal(err)
						}
						if step.UpToDate {
							break
						}
					}
					same(t, again.text.String(), want)
					if again.snapshots != 0 {
						t.Errorf("%d snapshots after resuming", again.snapshots)
					}
				})
			}
		}
	}
}

// A reader that snapshots overtake begins anew from the latest, whether it waits or is
// behind, and comes to the same state.
func TestSyncOvertaken(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	s := create(t, c, "log", asJSON, "0")
	want := "0\n"
	var st state
	var stale client.Offset
	rounds := 0
	for step, err := range s.Sync(deadline(t), "") {
		if err == nil {
			err = st.apply(step)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !step.UpToDate {
			continue
		}
		same(t, st.text.String(), want)
		if rounds++; rounds == 5 {
			break
		}
		stale = step.Next
		for range 2 {
			want += fmt.Sprintf("%d\n", rounds)
			publish(t, s, add(t, s, asJSON, fmt.Sprint(rounds)), want)
		}
	}
	// One that was away for longer.
	for step, err := range s.Sync(deadline(t), stale) {
		if err == nil {
			err = st.apply(step)
		}
		if err != nil {
			t.Fatal(err)
		}
		if step.UpToDate {
			break
		}
	}
	same(t, st.text.String(), want)
	if st.last.Snapshot != nil || st.snapshots < 2 {
		t.Errorf("%d snapshots", st.snapshots)
	}
	if err := s.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Sync(deadline(t), st.last.Next) {
		if !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("of a deleted stream: %v", err)
		}
	}
}

// Whatever breaks off, no step is applied that did not arrive whole.
func TestSyncBroken(t *testing.T) {
	server := clienttest.Serve(t, clienttest.Options{})
	proxy := clienttest.NewProxy(t, server.URL())
	c := connect(t, server.URL(), client.Options{})
	s := create(t, c, "log", asJSON, "")
	want := bulk(1 << 20)
	publish(t, s, add(t, s, asJSON, "0"), want)
	for i := range 200 {
		want += fmt.Sprintf("%d\n", i)
		add(t, s, asJSON, fmt.Sprint(i))
	}
	if _, err := s.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Fail(unlucky(40))
	far := connect(t, proxy.URL(), client.Options{}).Stream(stream.Name{Bucket: "demo", ID: "log"})
	snapshots := 0
	for range 5 {
		var st state
		for step, err := range far.Sync(deadline(t), "") {
			if err != nil {
				t.Fatal(err)
			}
			if err := st.apply(step); err != nil && !errors.Is(err, client.ErrUnreachable) {
				t.Fatal(err)
			}
		}
		same(t, st.text.String(), want)
		if !st.last.Closed {
			t.Error("it ends open")
		}
		snapshots += st.snapshots
	}
	if snapshots == 5 {
		t.Error("nothing broke off")
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, err := range far.Sync(ctx, "") {
		cancel()
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	}
	cancel()
}
