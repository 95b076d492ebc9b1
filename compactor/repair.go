package compactor

import (
	"context"
	"errors"
	"fmt"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Repair writes segments again that are in objects known to be damaged (see
// [hot.NoteDamage]), as far as all of their bytes have a hot copy, and swaps them. The
// damaged objects stay for the grace when nothing names them any more; those that are
// still named stay. It returns how many segments were replaced; when it is none there
// is nothing more to repair. It may run beside Run. Errors: those of the object store;
// what it could not write for other reasons it logs.
func (c *Compactor) Repair(ctx context.Context) (int, error) {
	if c.opts.SealingOff {
		return 0, nil
	}
	r := repair{c: c, groups: make(map[groupKey]*repairGroup)}
	var after hot.Held
	for {
		n, err := r.page(&after)
		if err != nil {
			return r.done, err
		}
		if n < evictPage {
			r.flush()
		}
		if err := r.write(ctx); err != nil || n < evictPage {
			return r.done, err
		}
	}
}

// repair is one walk over the segments that have hot copies: few, compared with what
// the catalog names. What a damaged object holds needs not be known.
type repair struct {
	c      *Compactor
	groups map[groupKey]*repairGroup
	full   []*moves
	owner  bool
	done   int
}

// page gathers what is to be written again of a page of the index.
func (r *repair) page(after *hot.Held) (int, error) {
	v := r.c.hot.View()
	defer v.Close()
	if damaged, err := v.Damaged("", 1); err != nil || len(damaged) == 0 {
		return 0, err
	}
	held, err := v.Held(*after, evictPage)
	if err != nil {
		return 0, err
	}
	for _, h := range held {
		*after = h
		if err := r.take(v, h); err != nil {
			return 0, err
		}
	}
	return len(held), nil
}

// take adds a segment if it is damaged and wholly hot.
func (r *repair) take(v *hot.View, h hot.Held) error {
	rec, err := v.Peek(h.ID)
	if errors.Is(err, stream.ErrNotFound) || err == nil && (rec.Cut > h.From || h.To <= rec.Floor) {
		return nil
	}
	if err != nil {
		return err
	}
	refs, err := v.Segments(h.ID, h.From, h.From+1, 1)
	if err != nil || len(refs) == 0 {
		return err
	}
	if d, err := v.Damage(refs[0].Object); err != nil || d == 0 {
		return err
	}
	r.gather(groupKey{rec.Name.Bucket, rec.Mode}, h.ID, refs[0])
	return nil
}

// gather adds a segment to its group. Those of one stream that meet become one; in one
// object a stream has one range.
func (r *repair) gather(k groupKey, id stream.ID, ref segment.Ref) {
	g := r.groups[k]
	if g == nil {
		g = &repairGroup{moves: moves{reason: reasonRepair}, at: make(map[stream.ID]int)}
		r.groups[k] = g
	}
	i, known := g.at[id]
	switch {
	case !known:
		g.at[id] = len(g.list)
		g.list = append(g.list, move{id: id, was: []segment.Ref{ref}, hot: true})
	case g.list[i].to() == ref.From && len(g.list[i].was) < hot.MaxRun:
		g.list[i].was = append(g.list[i].was, ref)
	default:
		r.fill(k)
		r.gather(k, id, ref)
		return
	}
	if g.bytes += ref.To - ref.From; g.bytes >= r.c.opts.Policy.Target || len(g.list) == segment.MaxEntries {
		r.fill(k)
	}
}

// repairGroup is what becomes one object, and where in its list a stream is.
type repairGroup struct {
	moves
	at map[stream.ID]int
}

func (r *repair) fill(k groupKey) {
	r.full = append(r.full, &r.groups[k].moves)
	delete(r.groups, k)
}

func (r *repair) flush() {
	for k := range r.groups {
		r.fill(k)
	}
}

// write makes objects of the groups that are full.
func (r *repair) write(ctx context.Context) error {
	for _, m := range r.full {
		if err := r.object(ctx, m); err != nil {
			return err
		}
	}
	r.full = r.full[:0]
	return nil
}

// object makes one object. A stream whose hot bytes cannot be read is left out.
func (r *repair) object(ctx context.Context, m *moves) error {
	if !r.owner {
		if err := r.c.opts.Cold.CheckOwner(ctx); err != nil {
			return err
		}
		r.owner = true
	}
	for len(m.list) > 0 {
		s, bad, err := r.c.buildMoves(ctx, m.list)
		if bad != 0 && ctx.Err() == nil {
			r.c.log.Error("cannot repair a segment from its hot copy", "stream", bad.String(), "err", err)
			m.list = without(m.list, bad)
			continue
		}
		if err != nil || s == nil {
			return err
		}
		defer s.Release()
		if err := s.replace(ctx, reasonRepair); err != nil {
			return fmt.Errorf("repair: %w", err)
		}
		if n := len(s.ids) - s.passed; n > 0 {
			r.done += n
			r.c.log.Info("segments repaired from their hot copies", "streams", n, "bytes", s.named, "key", s.key)
		}
		return nil
	}
	return nil
}
