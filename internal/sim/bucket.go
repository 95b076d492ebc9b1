package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
)

// data is in the key of every object but the owner record. Bytes of that one have no
// checksum of firn's: the transport's has to do.
const data = "/bucket="

// bucket is the object store with the trouble that package fault does not know: puts
// that land late, or of which less is kept than was said. It outlives processes.
type bucket struct {
	*mem.Store

	mu    sync.Mutex // guards what follows
	plans []*plan
	late  []latePut
}

type plan struct {
	Fault
	seen, done int
}

type latePut struct {
	key  string
	body []byte
	opts blob.PutOptions
}

func newBucket(now func() time.Time) *bucket {
	return &bucket{Store: mem.New(mem.Options{Now: now})}
}

// Put implements [blob.Store].
func (b *bucket) Put(ctx context.Context, key string, body blob.Body, o blob.PutOptions) (blob.Info, error) {
	p := b.next(key)
	if p == nil {
		return b.Store.Put(ctx, key, body, o)
	}
	content := make([]byte, body.Size())
	if _, err := io.ReadFull(io.NewSectionReader(body, 0, body.Size()), content); err != nil && len(content) > 0 {
		return blob.Info{}, err
	}
	info := blob.Info{Key: key, Size: int64(len(content)), ETag: "unknown"}
	switch p.Kind {
	case "late":
		b.mu.Lock()
		defer b.mu.Unlock()
		b.late = append(b.late, latePut{key, content, o})
		return blob.Info{}, fmt.Errorf("put %s: %w: no answer", key, blob.ErrUnavailable)
	case "torn":
		content = content[:min(p.At, int64(len(content))/2)]
		return b.Store.Put(ctx, key, bytes.NewReader(content), o)
	}
	return info, nil // lost
}

// next returns the plan for a put. Only segments are torn or lost: they are read back.
func (b *bucket) next(key string) *plan {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.plans {
		if p.Kind != "late" && !strings.HasSuffix(key, ".zst") {
			continue
		}
		if p.seen++; p.seen > p.Skip && (p.Times < 0 || p.done < max(p.Times, 1)) {
			p.done++
			return p
		}
	}
	return nil
}

// land lets the puts that were late happen. A condition holds for them as it does now.
func (b *bucket) land() error {
	b.mu.Lock()
	late := b.late
	b.late = nil
	b.mu.Unlock()
	for _, p := range late {
		_, err := b.Store.Put(context.Background(), p.key, bytes.NewReader(p.body), p.opts)
		if err != nil && !blob.Retryable(err) && !isCondition(err) {
			return err
		}
	}
	return nil
}

// trouble is the object store as one process has it: it fails by script, and is out of
// reach once the process is dead.
type trouble struct {
	*fault.Store
	bucket *bucket
	dead   atomic.Bool
	gate   chan struct{}
}

func newTrouble(b *bucket) *trouble { return &trouble{Store: fault.New(b), bucket: b} }

// begin puts the faults of a step in force.
func (t *trouble) begin(faults []Fault) {
	t.gate = make(chan struct{})
	for _, f := range faults {
		switch f.Kind {
		case "late", "lost", "torn":
			t.bucket.mu.Lock()
			t.bucket.plans = append(t.bucket.plans, &plan{Fault: f})
			t.bucket.mu.Unlock()
			continue
		}
		s := fault.Fault{Op: fault.Op(f.Op), Kind: kinds[f.Kind], Skip: f.Skip, Times: f.Times, At: f.At}
		switch s.Kind {
		case fault.Cut, fault.Short, fault.Flip, fault.Hide:
			s.Key = data
		case fault.Stall:
			s.Gate = t.gate
		}
		t.Script(s)
	}
}

// end ends the trouble. What stalls goes on.
func (t *trouble) end() {
	t.Clear()
	if t.gate != nil {
		close(t.gate)
		t.gate = nil
	}
	t.bucket.mu.Lock()
	defer t.bucket.mu.Unlock()
	t.bucket.plans = nil
}

var kinds = map[string]fault.Kind{
	"before": fault.Before, "after": fault.After, "stall": fault.Stall,
	"cut": fault.Cut, "short": fault.Short, "flip": fault.Flip, "hide": fault.Hide,
}

func (t *trouble) gone() error {
	if t.dead.Load() {
		return fmt.Errorf("%w: the process is dead", blob.ErrUnavailable)
	}
	return nil
}

// Put implements [blob.Store].
func (t *trouble) Put(ctx context.Context, key string, body blob.Body, o blob.PutOptions) (blob.Info, error) {
	if err := t.gone(); err != nil {
		return blob.Info{}, err
	}
	return t.Store.Put(ctx, key, body, o)
}

// Get implements [blob.Store].
func (t *trouble) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	if err := t.gone(); err != nil {
		return nil, blob.Info{}, err
	}
	return t.Store.Get(ctx, key, off, n)
}

// Delete implements [blob.Store].
func (t *trouble) Delete(ctx context.Context, keys ...string) error {
	if err := t.gone(); err != nil {
		return blob.DeleteFailed(keys, err)
	}
	return t.Store.Delete(ctx, keys...)
}

// List implements [blob.Store].
func (t *trouble) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	if err := t.gone(); err != nil {
		return err
	}
	return t.Store.List(ctx, prefix, after, fn)
}
