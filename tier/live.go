package tier

import (
	"context"
	"sync"

	"firn/pkg/stream"
	"firn/tier/hot"
)

const (
	// maxShared is the largest page that live readers share.
	maxShared = 64 << 10
	// maxSharedPages bounds how many are kept, one a stream: 32 MiB at most.
	maxSharedPages = 512
)

// shared holds, for each of the streams with live readers, the page that was read
// last: what many readers of one stream wait for is read once.
type shared struct {
	mu    sync.Mutex
	pages map[stream.ID]*sharedPage
}

// sharedPage is a range up to a tail. It is filled by the first who wants it while
// the others wait; its data are never changed.
type sharedPage struct {
	from, to uint64
	once     sync.Once
	data     []byte
	err      error
}

// share returns the bytes from a position to the tail, if they are hot and few. The
// view is of this reader; another's shows the same bytes.
func (s *Store) share(v *hot.View, rec *hot.Record, pos uint64) ([]byte, bool, error) {
	if pos < rec.Cut || rec.Tail-pos > maxShared || pos == rec.Tail {
		return nil, false, nil
	}
	s.shared.mu.Lock()
	p := s.shared.pages[rec.ID]
	if p == nil || p.from != pos || p.to != rec.Tail {
		if len(s.shared.pages) >= maxSharedPages {
			clear(s.shared.pages)
		}
		p = &sharedPage{from: pos, to: rec.Tail}
		s.shared.pages[rec.ID] = p
	}
	s.shared.mu.Unlock()
	p.once.Do(func() { p.data, p.err = v.Data(nil, rec.ID, p.from, p.to) })
	return p.data, true, p.err
}

// livePage is page for a follower: near the tail it is shared. It closes the view.
func (s *Store) livePage(ctx context.Context, v *hot.View, rec *hot.Record, pos uint64) (Page, error) {
	data, ok, err := s.share(v, rec, pos)
	if !ok {
		return s.page(ctx, v, rec, pos)
	}
	v.Close()
	if err != nil {
		return Page{}, err
	}
	p := Page{From: rec.Offset(pos), Next: rec.TailOffset(), Data: data, Tier: Hot, Info: info(rec)}
	return p.end(rec), nil
}
