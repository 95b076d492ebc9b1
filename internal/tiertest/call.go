package tiertest

import (
	"context"
	"fmt"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// call is an op made concrete: what the store is asked for.
type call struct {
	op          Op
	target      stream.ID
	source      stream.Name // of a fork
	contentType string
	payload     []byte
	object      string
	sealed      *segment.Sealed
	// Of a pack: the streams that this op names ranges of, and the segments that are to
	// be replaced.
	ids []stream.ID
	was [][]segment.Ref
	// found is the incarnation that the op's name had after a crash; it tells the
	// id of a stream whose creation was not answered.
	found stream.ID
}

func (c *call) snapshot() hot.Snapshot {
	return hot.Snapshot{Position: c.op.At, Object: c.object, Size: int64(c.op.Size), ContentType: "text/plain", CRC: uint32(c.op.Fill)}
}

// prepare makes an op concrete. Objects that will be named are put into the fake
// object store, whether they will be named or not.
func (r *run) prepare(o Op) (*call, error) {
	c := &call{op: o, object: fmt.Sprintf("objects/%06d", o.Object), contentType: o.contentType()}
	json := o.JSON
	if e := r.model.streams[o.Stream]; e != nil {
		c.target, c.source = e.id, e.name
		if o.Do == "append" {
			json = e.json
			if o.Type == "" {
				c.contentType = e.contentType
			}
		}
		if o.Do == "seal" {
			if err := r.build(c, []Part{{Stream: o.Stream, From: o.From, To: o.To}}); err != nil {
				return nil, fmt.Errorf("build segment: %w", err)
			}
		}
	}
	if len(o.Parts) > 0 {
		if err := r.build(c, o.Parts); err != nil {
			return nil, fmt.Errorf("build pack: %w", err)
		}
		for _, p := range o.named() {
			e := r.model.streams[p.Stream]
			c.ids, c.was = append(c.ids, e.id), append(c.was, e.within(p.From, p.To))
		}
	}
	c.payload = o.payload(json)
	return c, nil
}

// named are the parts of a pack that an op names.
func (o Op) named() []Part { return o.Parts[o.From:o.To] }

// within are the segments of a range, as far as they lie in it.
func (e *entity) within(from, to uint64) []segment.Ref {
	var refs []segment.Ref
	for _, s := range e.segments {
		if s.From >= from && s.To <= to {
			refs = append(refs, s)
		}
	}
	return refs
}

func (r *run) build(c *call, parts []Part) error {
	var w *segment.Writer
	for _, p := range parts {
		e := r.model.streams[p.Stream]
		m := segment.Meta{
			Store: r.store.ID(), Name: e.name, Incarnation: e.id, Life: e.life, Mode: stream.Bytes,
			ContentType: e.contentType, CreatedMs: e.created, From: p.From,
		}
		if e.json {
			m.Mode = stream.JSON
		}
		if w == nil {
			w = r.encoder.NewWriter(m)
		} else if err := w.Begin(m); err != nil {
			return err
		}
		if err := w.Append(e.content[p.From:p.To], r.model.now); err != nil {
			return err
		}
	}
	s, err := w.Finish()
	if err != nil {
		return err
	}
	s.Name(c.object)
	c.sealed = s
	r.objects[c.object] = s.Bytes
	return nil
}

// pack is what a pack's commands say of their object.
func (c *call) pack() hot.Pack {
	p := hot.Pack{Object: c.object, Size: uint64(len(c.sealed.Bytes))}
	for _, part := range c.op.Parts {
		p.Content += part.To - part.From
	}
	return p
}

func sealPack(ctx context.Context, s *hot.Store, c *call) outcome {
	cmd := hot.SealPack{Pack: c.pack()}
	for i := range c.op.named() {
		cmd.Parts = append(cmd.Parts, hot.Part{ID: c.ids[i], Ref: c.sealed.Refs[int(c.op.From)+i]})
	}
	r, err := s.SealPack(ctx, cmd)
	return outcome{err: err, passed: r.Passed}
}

func replace(ctx context.Context, s *hot.Store, c *call) outcome {
	cmd := hot.Replace{Pack: c.pack()}
	for i := range c.op.named() {
		p := hot.Replacement{ID: c.ids[i], Ref: c.sealed.Refs[int(c.op.From)+i]}
		for _, w := range c.was[i] {
			p.Was = append(p.Was, hot.Piece{From: w.From, To: w.To, Object: w.Object})
		}
		cmd.Parts = append(cmd.Parts, p)
	}
	r, err := s.Replace(ctx, cmd)
	return outcome{err: err, passed: r.Passed}
}

// issue sends a call to the store.
func issue(ctx context.Context, s *hot.Store, c *call) outcome {
	var o outcome
	switch op := c.op; op.Do {
	case "bucket":
		o.err = s.CreateBucket(ctx, op.Bucket)
	case "unbucket":
		o.err = s.DeleteBucket(ctx, op.Bucket)
	case "create", "fork":
		o = create(ctx, s, c)
	case "append":
		o.appended, o.err = s.Append(ctx, &hot.Append{
			ID: c.target, ContentType: c.contentType, Payload: c.payload,
			Seq: op.Seq, Producer: op.Producer, Close: op.Close,
		})
	case "delete":
		o.err = s.Delete(ctx, c.target)
	case "expire":
		o.err = s.Expire(ctx, c.target)
	case "publish":
		o.err = s.Publish(ctx, hot.Publish{ID: c.target, Snapshot: c.snapshot()})
	case "intend":
		o.err = s.Intend(ctx, c.object)
	case "seal":
		o.err = s.Seal(ctx, hot.Seal{ID: c.target, Ref: c.sealed.Refs[0], Size: uint64(len(c.sealed.Bytes))})
	case "pack":
		o = sealPack(ctx, s, c)
	case "replace":
		o = replace(ctx, s, c)
	case "unmerge":
		o.err = s.Unmerge(ctx, c.target)
	case "evict":
		o.err = s.Evict(ctx, c.target, op.At)
	case "trim":
		o.trimmed, o.err = s.Trim(ctx, c.target, op.Size)
	case "abandon":
		o.err = s.Abandon(ctx, c.object)
	case "forget":
		o.err = s.Forget(ctx, []string{c.object})
	default:
		o.err = fmt.Errorf("unknown op %q", op.Do)
	}
	return o
}

func create(ctx context.Context, s *hot.Store, c *call) outcome {
	cmd := hot.Create{
		Name: stream.Name{Bucket: c.op.Bucket, ID: c.op.ID}, ContentType: c.contentType, Mode: stream.Bytes,
		Lifetime: c.op.lifetime(), Closed: c.op.Close, Payload: c.payload,
	}
	if c.op.JSON {
		cmd.Mode = stream.JSON
	}
	if c.op.Do == "fork" {
		cmd.Fork = &hot.CreateFork{Source: c.target, From: c.source, Anchored: c.op.Anchored, Anchor: c.op.At, Position: c.op.At}
	}
	done, err := s.Create(ctx, cmd)
	return outcome{err: err, created: done.Created, record: done.Record}
}
