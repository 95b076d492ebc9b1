package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/tier/hot"
)

// transfers is how many objects are copied at a time.
const transfers = 8

// Progress is how far a transfer is.
type Progress struct {
	// Objects that were looked at, Copied of them and their bytes; the others were
	// there already.
	Objects, Copied int
	Bytes           int64
}

// transfer copies objects from one bucket to another. Those that are there with the
// same size are passed over, so that it can be broken off and begun again.
type transfer struct {
	from, to blob.Store
	decoder  *segment.Decoder
	tell     func(Progress) // may be nil

	mu      sync.Mutex // guards what follows
	done    Progress
	missing []string // that are not in from
}

func newTransfer(from, to blob.Store, tell func(Progress)) (*transfer, error) {
	d, err := segment.NewDecoder(segment.DecoderOptions{Concurrency: transfers})
	if err != nil {
		return nil, err
	}
	return &transfer{from: from, to: to, decoder: d, tell: tell}, nil
}

// objects copies all that a store names.
func (t *transfer) objects(ctx context.Context, h *hot.Rebuild, store string) error {
	there, stop := iter.Pull2(listed(ctx, t.to, store+"/bucket="))
	defer stop()
	at, err, more := there()
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(transfers)
	lerr := h.LiveObjects(func(key string, size uint64) bool {
		for ; more && err == nil && at.Key < key; at, err, more = there() {
		}
		if err != nil || gctx.Err() != nil {
			return false
		}
		if more && at.Key == key && uint64(at.Size) == size {
			t.passed()
			return true
		}
		g.Go(func() error { return t.object(gctx, key, int64(size)) })
		return true
	})
	return errors.Join(g.Wait(), lerr, err)
}

// listed yields the objects with a prefix, then the error that ended the listing.
func listed(ctx context.Context, blobs blob.Store, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		err := blobs.List(ctx, prefix, "", func(i blob.Info) error {
			if !yield(i, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(blob.Info{}, err)
		}
	}
}

// object copies one object, whose size the catalog knows, and checks what it is: all
// frames of a segment.
func (t *transfer) object(ctx context.Context, key string, size int64) error {
	file, err := t.spool(ctx, key)
	if errors.Is(err, blob.ErrNotFound) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.missing = append(t.missing, key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", key, err)
	}
	defer file.Close()
	body := io.NewSectionReader(file, 0, size)
	switch info, err := file.Stat(); {
	case err != nil:
		return fmt.Errorf("copy %s: %w", key, err)
	case info.Size() != size:
		return fmt.Errorf("copy %s: %w: it has %d bytes, %d in the catalog", key, blob.ErrCorrupt, info.Size(), size)
	}
	if strings.HasSuffix(key, ".zst") {
		if _, err := t.decoder.Verify(body, size); err != nil {
			return fmt.Errorf("copy %s: %w", key, err)
		}
	}
	if _, err := t.to.Put(ctx, key, body, blob.PutOptions{}); err != nil {
		return fmt.Errorf("copy %s: %w", key, err)
	}
	t.copied(size)
	return nil
}

// spool reads an object into a file that is gone when it is closed.
func (t *transfer) spool(ctx context.Context, key string) (*os.File, error) {
	r, _, err := t.from.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	file, err := os.CreateTemp("", "firn-transfer-*")
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(file, r)
	if err := errors.Join(err, os.Remove(file.Name())); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (t *transfer) passed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done.Objects++
	t.told()
}

func (t *transfer) copied(size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done.Objects++
	t.done.Copied++
	t.done.Bytes += size
	t.told()
}

// told tells how far it is. The caller holds mu.
func (t *transfer) told() {
	if t.tell != nil {
		t.tell(t.done)
	}
}
