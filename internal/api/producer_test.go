package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"firn/internal/api"
)

// Copies of one producer send the same requests at the same time, the later ones first
// where they can. Each request is accepted once, and all in order.
func TestProducerRequestsAreSerialized(t *testing.T) {
	const copies, requests = 8, 60
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "text/plain", "")
	var accepted [requests]atomic.Int32
	var senders sync.WaitGroup
	for first := range copies {
		senders.Go(func() {
			for seq := first; seq < requests; {
				a := c.do("POST", "/ds/trial/s", fmt.Sprintf("%d;", seq), "Content-Type: text/plain",
					"Producer-Id: p", "Producer-Epoch: 0", fmt.Sprintf("Producer-Seq: %d", seq))
				highest, _ := strconv.Atoi(a.header.Get("Producer-Seq"))
				expected, _ := strconv.Atoi(a.header.Get("Producer-Expected-Seq"))
				switch {
				case a.status == 200 && highest == seq:
					accepted[seq].Add(1)
					seq++
				case a.status == 204 && highest >= seq:
					seq++
				case a.status == 409 && expected < seq && a.header.Get("Producer-Received-Seq") == strconv.Itoa(seq):
					seq = expected
				default:
					t.Errorf("request %d: got %d %s, %v", seq, a.status, a.body, a.header)
					return
				}
			}
		})
	}
	senders.Wait()
	var want strings.Builder
	for seq := range requests {
		fmt.Fprintf(&want, "%d;", seq)
		if n := accepted[seq].Load(); n != 1 {
			t.Errorf("request %d was accepted %d times", seq, n)
		}
	}
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != want.String() {
		t.Errorf("the stream has %q", got)
	}
}
