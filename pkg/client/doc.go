// Package client speaks the Durable Streams protocol (B§) and its extensions (X§):
// with a firn server, or with any other server of the base protocol.
//
// A [Stream] is one stream, named by its URL. A [Client] is a firn server, with its
// buckets. Neither holds a connection or a goroutine; only a [Producer] does, until it
// is closed.
//
//	s, err := client.NewStream("http://127.0.0.1:4437/v1/stream/orders", client.Options{})
//	_, err = s.Create(ctx, client.CreateOptions{ContentType: "application/json"})
//	_, err = s.AppendJSON(ctx, Order{ID: 1}, Order{ID: 2})
//	for order, err := range client.Messages[Order](s.Follow(ctx, client.Beginning)) {
//		…
//	}
//
// What a [Page] holds is the stream's bytes, whatever form they had on the wire: of a
// JSON stream NDJSON, one message a line.
//
// Reads never skip or repeat a byte: what arrived is only handed on when the server
// has said where it ends, and a reader whose connection broke goes on from there.
// Whatever can be done twice without harm is repeated when it fails, as [Retry] says:
// reads, creation, and what a [Producer] sends. Everything else is done once, and an
// [ErrUnreachable] leaves open whether it was.
package client
