package stream_test

import (
	"reflect"
	"testing"

	"firn/pkg/stream"
)

func ref[T any](v T) *T { return &v }

func TestAdmit(t *testing.T) {
	const text = "text/plain"
	tail := stream.Offset{Life: 1, Position: 9}
	open := stream.WriterState{ContentType: text, Tail: tail}
	with := func(s stream.WriterState, epoch, seq uint64) stream.WriterState {
		s.Producer = &stream.ProducerState{Epoch: epoch, Seq: seq}
		return s
	}
	after := func(s stream.WriterState, seq string) stream.WriterState {
		s.Seq = &seq
		return s
	}
	closed := stream.WriterState{ContentType: text, Tail: tail, Closed: true}
	closedBy := with(closed, 3, 7)
	closedBy.Closer = &stream.Producer{ID: "p", Epoch: 3, Seq: 7}
	from := func(epoch, seq uint64) stream.Append {
		return stream.Append{ContentType: text, Producer: &stream.Producer{ID: "p", Epoch: epoch, Seq: seq}}
	}
	retry := from(3, 7)
	retry.Seq = ref("a")

	for _, c := range []struct {
		name   string
		state  stream.WriterState
		append stream.Append
		want   stream.Verdict
		err    error
	}{
		{"plain", open, stream.Append{ContentType: text}, stream.Accepted, nil},
		{"type in other case and with parameters", open, stream.Append{ContentType: "Text/PLAIN; charset=x"}, stream.Accepted, nil},
		{"other type", open, stream.Append{ContentType: "text/html"}, 0, stream.ErrContentType},
		{"no type", open, stream.Append{}, 0, stream.ErrContentType},
		{"close without bytes needs no type", open, stream.Append{Empty: true, Close: true}, stream.Accepted, nil},
		{"close without bytes ignores the type", open, stream.Append{Empty: true, Close: true, ContentType: "text/html"}, stream.Accepted, nil},
		{"close with bytes", open, stream.Append{ContentType: text, Close: true}, stream.Accepted, nil},

		{"first of a producer", open, from(0, 0), stream.Accepted, nil},
		{"first of a producer in a later epoch", open, from(5, 0), stream.Accepted, nil},
		{"first of a producer after a gap", open, from(0, 1), 0, &stream.SeqGapError{Expected: 0, Received: 1}},
		{"next", with(open, 3, 7), from(3, 8), stream.Accepted, nil},
		{"again", with(open, 3, 7), from(3, 7), stream.Duplicate, nil},
		{"one of long ago", with(open, 3, 7), from(3, 0), stream.Duplicate, nil},
		{"gap of one", with(open, 3, 7), from(3, 9), 0, &stream.SeqGapError{Expected: 8, Received: 9}},
		{"new epoch", with(open, 3, 7), from(4, 0), stream.Accepted, nil},
		{"new epoch past its start", with(open, 3, 7), from(4, 1), 0, stream.ErrProducerStart},
		{"epoch before", with(open, 3, 7), from(2, 8), 0, &stream.StaleEpochError{Current: 3}},
		{"epoch before, at its start", with(open, 3, 7), from(2, 0), 0, &stream.StaleEpochError{Current: 3}},
		{"largest numbers", with(open, stream.MaxProducerNumber, stream.MaxProducerNumber-1), from(stream.MaxProducerNumber, stream.MaxProducerNumber), stream.Accepted, nil},

		{"first Stream-Seq", open, stream.Append{ContentType: text, Seq: ref("")}, stream.Accepted, nil},
		{"greater", after(open, "b"), stream.Append{ContentType: text, Seq: ref("c")}, stream.Accepted, nil},
		{"equal", after(open, "b"), stream.Append{ContentType: text, Seq: ref("b")}, 0, stream.ErrSeqRegression},
		{"smaller", after(open, "b"), stream.Append{ContentType: text, Seq: ref("a")}, 0, stream.ErrSeqRegression},
		{"bytes are compared, not numbers", after(open, "9"), stream.Append{ContentType: text, Seq: ref("10")}, 0, stream.ErrSeqRegression},
		{"case matters", after(open, "a"), stream.Append{ContentType: text, Seq: ref("B")}, 0, stream.ErrSeqRegression},
		{"a longer one is greater", after(open, "a"), stream.Append{ContentType: text, Seq: ref("a0")}, stream.Accepted, nil},
		{"without one after one", after(open, "b"), stream.Append{ContentType: text}, stream.Accepted, nil},

		{"type before producer", with(open, 3, 7), stream.Append{ContentType: "text/html", Producer: &stream.Producer{ID: "p", Epoch: 2}}, 0, stream.ErrContentType},
		{"a retry is told before its Stream-Seq", after(with(open, 3, 7), "a"), retry, stream.Duplicate, nil},
		{"producer before Stream-Seq", after(with(open, 3, 6), "z"), stream.Append{ContentType: text, Seq: ref("a"), Producer: &stream.Producer{ID: "p", Epoch: 3, Seq: 9}}, 0, &stream.SeqGapError{Expected: 7, Received: 9}},

		{"append to closed", closed, stream.Append{ContentType: text}, 0, &stream.ClosedError{Tail: tail}},
		{"closed before type", closed, stream.Append{ContentType: "text/html"}, 0, &stream.ClosedError{Tail: tail}},
		{"close again", closed, stream.Append{Empty: true, Close: true}, stream.Duplicate, nil},
		{"close again with bytes", closed, stream.Append{ContentType: text, Close: true}, 0, &stream.ClosedError{Tail: tail}},
		{"close again as a producer", closed, from(0, 0), 0, &stream.ClosedError{Tail: tail}},
		{"the closing request again", closedBy, from(3, 7), stream.Duplicate, nil},
		{"an earlier request of the closer", closedBy, from(3, 6), 0, &stream.ClosedError{Tail: tail}},
		{"the next request of the closer", closedBy, from(3, 8), 0, &stream.ClosedError{Tail: tail}},
		{"a fenced producer on closed", closedBy, from(2, 9), 0, &stream.StaleEpochError{Current: 3}},
		{"the numbers of the closer, another id", closedBy, stream.Append{ContentType: text, Producer: &stream.Producer{ID: "q", Epoch: 3, Seq: 7}}, 0, &stream.ClosedError{Tail: tail}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := stream.Admit(c.state, c.append)
			if got != c.want || !reflect.DeepEqual(err, c.err) {
				t.Fatalf("got %v, %#v; want %v, %#v", got, err, c.want, c.err)
			}
		})
	}
}
