package hot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"firn/pkg/stream"
)

// dataVersion is the first byte of every data value.
const dataVersion = 1

// dataHeader is what precedes the payload in a data value: the version and the
// append time in ms.
const dataHeader = 9

// MaxValue bounds the payload of one data value. Larger appends are split, at the
// end of a message where one fits.
const MaxValue = 256 << 10

// apply is the one function that changes the catalog. It depends on nothing but
// the command, its time, the state that earlier commands left and the limits. An
// error of pkg/stream or ErrConflict refuses the command and changes nothing; any
// other is a failure of the store.
func (t *txn) apply(command any) (any, error) {
	switch c := command.(type) {
	case *Append:
		return t.append(c)
	case Create:
		return t.create(c)
	case Touch:
		return nil, t.touch(c)
	case Delete:
		return nil, t.remove(c.ID)
	case Expire:
		return nil, t.expire(c)
	case CreateBucket:
		return nil, t.createBucket(c)
	case DeleteBucket:
		return nil, t.deleteBucket(c)
	case Publish:
		return nil, t.publish(c)
	case Intend:
		return nil, t.intend(c)
	case Prolong:
		return nil, t.prolong(c)
	case Abandon:
		return nil, t.abandon(c)
	case Seal:
		return nil, t.seal(c)
	case SealPack:
		return t.sealPack(c)
	case Replace:
		return t.replacePack(c)
	case Unmerge:
		return nil, t.unmerge(c)
	case Evict:
		return t.evict(c)
	case Trim:
		return t.trim(c)
	case Forget:
		return nil, t.forget(c)
	case Postpone:
		return nil, t.postpone(c)
	case Fence:
		t.state.Fence = max(t.state.Fence, c.Number)
		return nil, nil
	case BeginGeneration:
		return nil, t.beginGeneration(c)
	case CompleteGeneration:
		return nil, t.completeGeneration(c)
	case SetMark:
		return nil, t.setMark(c)
	case NoteDamage:
		return nil, t.noteDamage(c)
	case ForgetGeneration:
		return nil, t.delete(keyGeneration(c.Generation))
	}
	return t.applySubscription(command)
}

// visible returns the record of a stream that clients may use.
func (t *txn) visible(id stream.ID) (*Record, error) {
	rec, err := t.stream(id)
	switch {
	case err != nil:
		return nil, err
	case rec == nil || rec.Deadline != 0 && rec.Deadline <= t.now:
		return nil, stream.ErrNotFound
	case rec.Deleted:
		return nil, stream.ErrGone
	}
	return rec, nil
}

func (t *txn) append(c *Append) (AppendResult, error) {
	rec, err := t.visible(c.ID)
	if err != nil {
		return AppendResult{}, err
	}
	var known *stream.ProducerState
	if c.Producer != nil {
		if known, err = t.producer(c.ID, c.Producer.ID); err != nil {
			return AppendResult{}, err
		}
	}
	verdict, err := stream.Admit(
		stream.WriterState{
			ContentType: rec.ContentType, Tail: rec.TailOffset(), Closed: rec.Closed,
			Closer: rec.Closer, Seq: rec.Seq, Producer: known,
		},
		stream.Append{
			ContentType: c.ContentType, Empty: len(c.Payload) == 0, Close: c.Close,
			Seq: c.Seq, Producer: c.Producer,
		})
	if err != nil {
		return AppendResult{}, err
	}
	if verdict == stream.Duplicate {
		return AppendResult{Tail: rec.TailOffset(), Closed: rec.Closed, Duplicate: true, Producer: known}, nil
	}
	if c.Producer != nil && known == nil && rec.Producers >= t.limits.producers {
		return AppendResult{}, stream.ErrProducerLimit
	}

	rec = t.edit(c.ID)
	if err := t.extend(rec, c.Payload); err != nil {
		return AppendResult{}, err
	}
	if c.Seq != nil {
		rec.Seq = c.Seq
	}
	if c.Close {
		rec.Closed, rec.Closer = true, c.Producer
	}
	t.renew(rec)
	result := AppendResult{Closed: rec.Closed, Tail: rec.TailOffset()}
	if c.Producer != nil {
		if known == nil {
			rec.Producers++
		}
		result.Producer = &stream.ProducerState{Epoch: c.Producer.Epoch, Seq: c.Producer.Seq}
		err = t.set(keyProducer(c.ID, c.Producer.ID), encodeProducer(*result.Producer))
	}
	return result, err
}

// extend puts stored bytes at the tail of a record of this batch's own.
func (t *txn) extend(rec *Record, payload []byte) error {
	rec.LastWrite = t.now
	if len(payload) == 0 {
		return nil
	}
	if rec.Sealed == rec.Tail {
		rec.UnsealedSince = t.now
	}
	for len(payload) > 0 {
		n := valueEnd(payload, rec.Mode)
		op := t.batch.SetDeferred(17, dataHeader+n)
		op.Key[0] = kindData
		binary.BigEndian.PutUint64(op.Key[1:], uint64(rec.ID))
		binary.BigEndian.PutUint64(op.Key[9:], rec.Tail)
		op.Value[0] = dataVersion
		binary.BigEndian.PutUint64(op.Value[1:], t.now)
		copy(op.Value[dataHeader:], payload[:n])
		if err := op.Finish(); err != nil {
			return err
		}
		rec.Tail += uint64(n)
		payload = payload[n:]
	}
	return nil
}

// valueEnd returns how much of a payload goes into its first value.
func valueEnd(payload []byte, mode stream.Mode) int {
	if len(payload) <= MaxValue {
		return len(payload)
	}
	if mode == stream.JSON {
		if i := bytes.LastIndexByte(payload[:MaxValue], '\n'); i >= 0 {
			return i + 1
		}
	}
	return MaxValue
}

func (t *txn) producer(id stream.ID, producer string) (*stream.ProducerState, error) {
	v, err := get(t.batch, keyProducer(id, producer))
	if err != nil || v == nil {
		return nil, err
	}
	return decodeProducer(v)
}

const producerVersion = 1

func encodeProducer(p stream.ProducerState) []byte {
	b := make([]byte, 1, 20)
	b[0] = producerVersion
	b = binary.AppendUvarint(b, p.Epoch)
	return binary.AppendUvarint(b, p.Seq)
}

func decodeProducer(b []byte) (*stream.ProducerState, error) {
	d := decoder{b: b}
	d.version(producerVersion)
	p := &stream.ProducerState{Epoch: d.uint(), Seq: d.uint()}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("decode producer state: %w", err)
	}
	return p, nil
}
