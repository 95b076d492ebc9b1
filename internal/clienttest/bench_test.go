package clienttest_test

import (
	"net/http"
	"strings"
	"testing"

	"firn/internal/clienttest"
	"firn/pkg/client"
)

// BenchmarkAppend is one small message: as a request of its own, and by a producer.
func BenchmarkAppend(b *testing.B) {
	const message = `{"n":1}`
	open := func(b *testing.B) (*client.Stream, *http.Client) {
		o := client.Options{HTTP: clienttest.NewHTTP(b)}
		s, err := client.NewStream(clienttest.Serve(b, clienttest.Options{}).URL()+"/v1/stream/log", o)
		if err == nil {
			_, err = s.Create(b.Context(), client.CreateOptions{ContentType: asJSON})
		}
		if err != nil {
			b.Fatal(err)
		}
		return s, o.HTTP
	}
	b.Run("post", func(b *testing.B) {
		s, raw := open(b)
		for b.Loop() {
			resp, err := raw.Post(s.URL(), asJSON, strings.NewReader(message))
			if err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		}
	})
	b.Run("append", func(b *testing.B) {
		s, _ := open(b)
		for b.Loop() {
			if _, err := s.Append(b.Context(), []byte(message), client.AppendOptions{ContentType: asJSON}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("producer", func(b *testing.B) {
		s, _ := open(b)
		p, err := s.NewProducer(client.ProducerOptions{ContentType: asJSON})
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := p.Append(b.Context(), []byte(message)); err != nil {
				b.Fatal(err)
			}
		}
		if err := p.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	})
}
