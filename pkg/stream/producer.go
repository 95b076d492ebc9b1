package stream

// MaxProducerNumber bounds epochs and sequence numbers (B§5.2.1): the largest
// integer that JavaScript holds exactly.
const MaxProducerNumber = 1<<53 - 1

// MaxProducerID bounds a producer's id, in bytes.
const MaxProducerID = 256

// MaxSeq bounds a Stream-Seq value, in bytes.
const MaxSeq = 256

// Producer is the claim that an idempotent producer makes with an append (B§5.2.1).
type Producer struct {
	ID    string
	Epoch uint64
	Seq   uint64
}

// ProducerState is what a stream remembers of a producer: its epoch and the
// highest sequence number accepted in it. It lives as long as the stream.
type ProducerState struct {
	Epoch uint64
	Seq   uint64
}
