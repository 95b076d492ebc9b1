package api_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"firn/internal/api"
)

// TestProducersAreSerialised sends each sequence number of one producer from several
// connections at once: one of them is new, the others are duplicates, and what is stored
// is there once and in order (B§5.2.1).
func TestProducersAreSerialised(t *testing.T) {
	const rounds, rivals = 60, 6
	c, _ := connect(t, api.Options{})
	const path = "/ds/trial/s"
	c.create(path, "text/plain", "")
	want := ""
	for seq := range rounds {
		var wg sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range rivals {
			wg.Go(func() {
				a := c.do("POST", path, fmt.Sprintln(seq), "Content-Type: text/plain", "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: "+strconv.Itoa(seq))
				mu.Lock()
				defer mu.Unlock()
				statuses[a.status]++
				if got := a.header.Get("Producer-Seq"); got != strconv.Itoa(seq) {
					t.Errorf("%d: Producer-Seq is %q", seq, got)
				}
			})
		}
		wg.Wait()
		if statuses[200] != 1 || statuses[204] != rivals-1 {
			t.Fatalf("%d: got %v", seq, statuses)
		}
		want += fmt.Sprintln(seq)
	}
	if got := c.want(200, "GET", path, "").body; got != want {
		t.Errorf("stream holds %q", got)
	}
}

// TestPipelinedProducer sends a producer's requests all at once. Those that arrive early
// are refused, told what is expected, and sent again, as the protocol's clients do.
func TestPipelinedProducer(t *testing.T) {
	const requests = 25
	c, _ := connect(t, api.Options{})
	const path = "/ds/trial/s"
	c.create(path, "text/plain", "")
	var wg sync.WaitGroup
	for seq := range requests {
		wg.Go(func() {
			for {
				a := c.do("POST", path, fmt.Sprintln(seq), "Content-Type: text/plain", "Producer-Id: p", "Producer-Epoch: 7", "Producer-Seq: "+strconv.Itoa(seq))
				if a.status == 200 {
					return
				}
				expected, err := strconv.Atoi(a.header.Get("Producer-Expected-Seq"))
				if a.status != 409 || err != nil || expected >= seq || a.header.Get("Producer-Received-Seq") != strconv.Itoa(seq) {
					t.Errorf("%d: got %d %s, %v", seq, a.status, a.body, a.header)
					return
				}
			}
		})
	}
	wg.Wait()
	var want strings.Builder
	for seq := range requests {
		fmt.Fprintln(&want, seq)
	}
	if got := c.want(200, "GET", path, "").body; got != want.String() {
		t.Errorf("stream holds %q", got)
	}
}

// TestUnknownProducer may begin with any epoch, but with its first sequence only.
func TestUnknownProducer(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const path, text = "/ds/trial/s", "Content-Type: text/plain"
	c.create(path, "text/plain", "")
	for i, epoch := range []string{"0", "1", "41", "007"} {
		id := fmt.Sprintf("Producer-Id: p%d", i)
		a := c.want(409, "POST", path, "x", text, id, "Producer-Epoch: "+epoch, "Producer-Seq: 1")
		if a.header.Get("Producer-Expected-Seq") != "0" || a.header.Get("Producer-Received-Seq") != "1" {
			t.Errorf("epoch %s: %v", epoch, a.header)
		}
		c.want(200, "POST", path, "x", text, id, "Producer-Epoch: "+epoch, "Producer-Seq: 000")
	}
	if got := c.want(200, "GET", path, "").body; got != "xxxx" {
		t.Errorf("stream holds %q", got)
	}
}

// TestConcurrentEpochs: two processes that both took over leave one of them fenced, and
// nothing of a fenced one is stored after the other's first append.
func TestConcurrentEpochs(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const path, text = "/ds/trial/s", "Content-Type: text/plain"
	c.create(path, "text/plain", "")
	var wg sync.WaitGroup
	for epoch := range 5 {
		wg.Go(func() {
			for seq := 0; ; seq++ {
				a := c.do("POST", path, strconv.Itoa(epoch), text, "Producer-Id: p", "Producer-Epoch: "+strconv.Itoa(epoch), "Producer-Seq: "+strconv.Itoa(seq))
				switch {
				case a.status == 403 && a.header.Get("Producer-Epoch") > strconv.Itoa(epoch):
					return
				case a.status != 200:
					t.Errorf("%d, %d: got %d %s", epoch, seq, a.status, a.body)
					return
				case epoch == 4 && seq == 20:
					return
				}
			}
		})
	}
	wg.Wait()
	got := c.want(200, "GET", path, "").body
	for i := 1; i < len(got); i++ {
		if got[i] < got[i-1] {
			t.Fatalf("an older epoch was stored after a newer one: %q", got)
		}
	}
	if !strings.HasSuffix(got, strings.Repeat("4", 21)) {
		t.Errorf("stream holds %q", got)
	}
}
