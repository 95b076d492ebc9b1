package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

type Order struct {
	ID int `json:"id"`
}

// server starts a server for an example and returns its root.
func server() (root string, stop func()) {
	s, err := clienttest.Open(clienttest.Options{})
	must(err)
	return s.URL(), func() { must(s.Close()) }
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// A stream of any server of the protocol, by its URL.
func Example() {
	root, stop := server()
	defer stop()
	ctx := context.Background()

	s, err := client.NewStream(root+"/v1/stream/shop/orders", client.Options{})
	must(err)
	_, err = s.Create(ctx, client.CreateOptions{ContentType: "application/json"})
	must(err)
	_, err = s.AppendJSON(ctx, Order{1}, Order{2})
	must(err)
	_, err = s.End(ctx) // so that following ends, too
	must(err)

	for order, err := range client.Messages[Order](s.Follow(ctx, client.Beginning)) {
		must(err)
		fmt.Println(order.ID)
	}
	// Output:
	// 1
	// 2
}

// Who keeps the offset of what was done goes on there after a restart.
func ExampleStream_Follow() {
	root, stop := server()
	defer stop()
	ctx := context.Background()
	s, err := client.NewStream(root+"/v1/stream/log", client.Options{})
	must(err)
	_, err = s.Create(ctx, client.CreateOptions{ContentType: "application/json", Data: []byte(`["a","b"]`), Closed: true})
	must(err)
	var saved client.Offset

	for page, err := range s.Follow(ctx, saved) {
		must(err)
		for message := range page.Messages() {
			fmt.Printf("%s\n", message)
		}
		saved = page.Next // with what was made of the page, in one transaction
	}
	fmt.Println(saved != "")
	// Output:
	// "a"
	// "b"
	// true
}

// Many small appends, each of them once, whatever happens on the way.
func ExampleProducer() {
	root, stop := server()
	defer stop()
	ctx := context.Background()
	s, err := client.NewStream(root+"/v1/stream/orders", client.Options{})
	must(err)
	_, err = s.Create(ctx, client.CreateOptions{ContentType: "application/json"})
	must(err)

	p, err := s.NewProducer(client.ProducerOptions{ID: "till-7", AutoClaim: true, ContentType: "application/json"})
	must(err)
	for id := range 1000 {
		must(p.Append(ctx, fmt.Appendf(nil, `{"id":%d}`, id)))
	}
	must(p.Close(ctx)) // all of it is in the stream now
	fmt.Println(p.Acked())
	// Output: 1000
}

// A state that is built from a snapshot and kept up to date.
func ExampleStream_Sync() {
	root, stop := server()
	defer stop()
	ctx := context.Background()
	c, err := client.New(root, client.Options{})
	must(err)
	must(c.CreateBucket(ctx, "demo"))
	s := c.Stream(stream.Name{Bucket: "demo", ID: "words"})
	_, err = s.Create(ctx, client.CreateOptions{ContentType: "text/plain"})
	must(err)
	_, err = s.Append(ctx, []byte("some "), client.AppendOptions{ContentType: "text/plain"})
	must(err)

	info, err := s.Head(ctx)
	must(err)
	must(s.PublishSnapshot(ctx, info.Tail, "text/plain", strings.NewReader("SOME ")))

	_, err = s.Append(ctx, []byte("words"), client.AppendOptions{ContentType: "text/plain", Close: true})
	must(err)

	var state strings.Builder
	for step, err := range s.Sync(ctx, "") {
		must(err)
		if step.Snapshot != nil {
			state.Reset()
			if _, err := io.Copy(&state, step.Snapshot); errors.Is(err, client.ErrUnreachable) {
				continue // another snapshot comes
			}
		}
		state.Write(step.Data)
	}
	fmt.Println(state.String())
	// Output: SOME words
}

// Errors say what they mean, and carry what is needed to go on.
func ExampleError() {
	root, stop := server()
	defer stop()
	ctx := context.Background()
	s, err := client.NewStream(root+"/v1/stream/log", client.Options{})
	must(err)

	_, err = s.Append(ctx, []byte("hello"), client.AppendOptions{ContentType: "text/plain"})
	if errors.Is(err, stream.ErrNotFound) {
		_, err = s.Create(ctx, client.CreateOptions{ContentType: "text/plain", Data: []byte("hello"), Closed: true})
	}
	must(err)

	_, err = s.Append(ctx, []byte("more"), client.AppendOptions{ContentType: "text/plain"})
	if closed, ok := errors.AsType[*client.ClosedError](err); ok {
		slog.Debug("nothing can be added", "end", closed.Final)
	}
	if answer, ok := errors.AsType[*client.Error](err); ok {
		fmt.Println(answer.Status, answer.Code)
	}
	// Output: 409 stream_closed
}
