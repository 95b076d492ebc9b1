package client

import (
	"fmt"
	"sync"

	"firn/pkg/stream"
)

// batch is what one request of a producer carries, however often it is sent.
type batch struct {
	json  bool
	body  []byte
	taken int    // bytes as they count for the buffer
	count uint64 // appends
	end   bool   // closes the stream

	// Set when it is sent first.
	epoch, seq uint64
	prev       *batch // the one before it, nil if that is acknowledged

	sent     chan struct{} // a request was written, or there will be none
	sentOnce sync.Once
	done     chan struct{} // err is set
	err      error
}

func newBatch(json bool) *batch {
	return &batch{json: json, sent: make(chan struct{}), done: make(chan struct{})}
}

// add puts data, or a message, behind the others.
func (b *batch) add(data []byte) {
	if b.json {
		sep := byte(',')
		if len(b.body) == 0 {
			sep = '['
		}
		b.body = append(b.body, sep)
	}
	b.body = append(b.body, data...)
	b.taken += len(data)
	b.count++
}

func (b *batch) size() int { return len(b.body) }

// seal ends the body.
func (b *batch) seal() {
	if b.json && len(b.body) > 0 {
		b.body = append(b.body, ']')
	}
}

func (b *batch) wasSent() { b.sentOnce.Do(func() { close(b.sent) }) }

// message checks that data is one message, and returns it without white space, so that
// one that is not cannot spoil its batch.
func message(data []byte) ([]byte, error) {
	// In an array: if it is one itself, no level may be taken off.
	array := make([]byte, 0, len(data)+2)
	array = append(append(append(array, '['), data...), ']')
	line, n, err := stream.EncodeJSON(nil, array)
	if err != nil {
		return nil, fmt.Errorf("message %w", err)
	}
	if n != 1 {
		return nil, fmt.Errorf("message %w", &stream.JSONError{Offset: 0, Reason: "it is more than one"})
	}
	return line[:len(line)-1], nil
}
