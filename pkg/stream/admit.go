package stream

// WriterState is what a stream knows when an append arrives.
type WriterState struct {
	ContentType string
	Tail        Offset
	Closed      bool
	// Closer is the producer request that closed the stream, nil if none did.
	Closer *Producer
	// Seq is the last Stream-Seq accepted, nil before the first.
	Seq *string
	// Producer is the state of the append's producer, nil when it is new here.
	Producer *ProducerState
}

// Append is what an append claims, without its bytes.
type Append struct {
	// ContentType is ignored when Empty.
	ContentType string
	// Empty: no bytes; then Close is set.
	Empty    bool
	Close    bool
	Seq      *string
	Producer *Producer
}

// Verdict is the outcome of an append that is not refused.
type Verdict uint8

const (
	// Accepted: the append changes the stream.
	Accepted Verdict = iota + 1
	// Duplicate: it was done before; nothing changes.
	Duplicate
)

// Admit decides on an append (B§5.2). It checks, in this order: the stream is
// open, the content type, the producer, Stream-Seq. A duplicate is recognised
// before Stream-Seq is looked at, so that a retry which carries both is no
// conflict. Errors: [*ClosedError], [ErrContentType], [*StaleEpochError],
// [ErrProducerStart], [*SeqGapError], [ErrSeqRegression].
func Admit(s WriterState, a Append) (Verdict, error) {
	if s.Closed {
		return admitClosed(s, a)
	}
	if !a.Empty && !SameType(a.ContentType, s.ContentType) {
		return 0, ErrContentType
	}
	if a.Producer != nil {
		if v, err := admitProducer(s.Producer, *a.Producer); err != nil || v == Duplicate {
			return v, err
		}
	}
	if a.Seq != nil && s.Seq != nil && *a.Seq <= *s.Seq {
		return 0, ErrSeqRegression
	}
	return Accepted, nil
}

// admitClosed accepts only what closed the stream already: the same producer
// request again, or a close without bytes that claims no producer.
func admitClosed(s WriterState, a Append) (Verdict, error) {
	switch {
	case a.Producer != nil && s.Closer != nil && *a.Producer == *s.Closer:
		return Duplicate, nil
	case a.Producer == nil && a.Empty && a.Close:
		return Duplicate, nil
	case a.Producer != nil && s.Producer != nil && a.Producer.Epoch < s.Producer.Epoch:
		return 0, &StaleEpochError{Current: s.Producer.Epoch}
	}
	return 0, &ClosedError{Tail: s.Tail}
}

func admitProducer(s *ProducerState, p Producer) (Verdict, error) {
	switch {
	case s == nil && p.Seq == 0:
		return Accepted, nil
	case s == nil:
		return 0, &SeqGapError{Expected: 0, Received: p.Seq}
	case p.Epoch < s.Epoch:
		return 0, &StaleEpochError{Current: s.Epoch}
	case p.Epoch > s.Epoch && p.Seq != 0:
		return 0, ErrProducerStart
	case p.Epoch > s.Epoch:
		return Accepted, nil
	case p.Seq <= s.Seq:
		return Duplicate, nil
	case p.Seq > s.Seq+1:
		return 0, &SeqGapError{Expected: s.Seq + 1, Received: p.Seq}
	}
	return Accepted, nil
}
