package clienttest_test

import (
	"testing"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

// A fork knows nothing of the producers of its source: the same one begins anew there,
// and goes on with the source.
func TestProducerOfAFork(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	source := create(t, c, "source", asJSON, "")
	fork := c.Stream(stream.Name{Bucket: "demo", ID: "fork"})
	say := func(p *client.Producer, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if err := p.Append(t.Context(), []byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := p.Flush(deadline(t)); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := client.ProducerOptions{ID: "p", Epoch: 7, ContentType: asJSON}
	ofSource := produce(t, source, o)
	say(ofSource, "1", "2")
	if _, err := fork.Create(t.Context(), client.CreateOptions{Fork: &client.Fork{Source: source}}); err != nil {
		t.Fatal(err)
	}
	say(produce(t, fork, o), "10", "11")
	say(ofSource, "3")
	for s, want := range map[*client.Stream]string{source: "1\n2\n3\n", fork: "1\n2\n10\n11\n"} {
		got, _ := collect(t, s.Read(t.Context(), ""), nil)
		same(t, got, want)
	}
}
