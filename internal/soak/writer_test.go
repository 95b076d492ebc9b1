//go:build integration

package soak_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// client retries a request until the server has answered it.
var client = &http.Client{Timeout: 20 * time.Second}

// answer is a response that was read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// do repeats a request until it is answered with something else than 503: for two
// minutes, and as long as the object store may be in trouble.
func do(method, url string, body []byte, header ...string) (answer, error) {
	patience := 2**flagEach + 2*time.Minute
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		a, err := once(method, url, body, header...)
		if err == nil && a.status != http.StatusServiceUnavailable {
			return a, nil
		}
		if time.Now().After(deadline) {
			return a, fmt.Errorf("%s %s: no answer in %v: %d %s, %v", method, url, patience, a.status, a.body, err)
		}
	}
}

func once(method, url string, body []byte, header ...string) (answer, error) {
	req, err := http.NewRequest(method, url, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, b}, err
}

// writer is one client with a stream of its own, and its record of it: what it
// wrote is made from a seed, so the record is the number of acknowledged appends.
type writer struct {
	url   string
	json  bool
	seed  uint64
	sizes []int // of the acknowledged appends

	// written counts the acknowledged bytes of all writers.
	written *atomic.Int64

	// inherited is the source's content below the fork point, nil for no fork.
	inherited func() []byte
	// start is where the content begins for readers: the position of the snapshot.
	start    int
	snapshot []byte
	snapAt   string
}

func (w *writer) contentType() string {
	if w.json {
		return "application/json"
	}
	return "application/octet-stream"
}

// payload is the i-th append, and what is stored of it.
func (w *writer) payload(i, size int) (body, stored []byte) {
	r := rand.New(rand.NewPCG(w.seed, uint64(i)))
	raw := make([]byte, size)
	for j := 0; j < len(raw); j += 8 {
		v := r.Uint64()
		for k := j; k < min(j+8, len(raw)); k++ {
			raw[k] = byte(v >> (8 * (k - j)))
		}
	}
	if !w.json {
		return raw, raw
	}
	body = append(body, '[')
	for n := 0; len(raw) > 0; n++ {
		part := raw[:min(len(raw), 200)]
		raw = raw[len(part):]
		m := fmt.Sprintf(`{"append":%d,"n":%d,"data":%q}`, i, n, hex.EncodeToString(part))
		if n > 0 {
			body = append(body, ',', ' ')
		}
		body = append(body, m...)
		stored = append(append(stored, m...), '\n')
	}
	return append(body, ']'), stored
}

// content is what a reader must get, as stored bytes.
func (w *writer) content() []byte {
	var all []byte
	if w.inherited != nil {
		all = append(all, w.inherited()...)
	}
	for i, size := range w.sizes {
		_, stored := w.payload(i, size)
		all = append(all, stored...)
	}
	return all
}

func (w *writer) create(header ...string) error {
	a, err := do(http.MethodPut, w.url, nil, append([]string{"Content-Type", w.contentType()}, header...)...)
	if err == nil && a.status != http.StatusCreated && a.status != http.StatusOK {
		err = fmt.Errorf("create %s: %d %s", w.url, a.status, a.body)
	}
	return err
}

// append sends one append until it is acknowledged. A producer's sequence makes a
// retry after an unknown outcome harmless.
func (w *writer) append(size int) error {
	i := len(w.sizes)
	body, stored := w.payload(i, size)
	a, err := do(http.MethodPost, w.url, body, "Content-Type", w.contentType(),
		"Producer-Id", "soak", "Producer-Epoch", "0", "Producer-Seq", strconv.Itoa(i))
	if err != nil {
		return err
	}
	if a.status != http.StatusOK && a.status != http.StatusNoContent {
		return fmt.Errorf("append %d to %s: %d %s", i, w.url, a.status, a.body)
	}
	w.sizes = append(w.sizes, size)
	w.written.Add(int64(len(stored)))
	return nil
}

// fork makes a fork of the stream as it is now.
func (w *writer) fork(url string, seed uint64) (*writer, error) {
	sizes := slices.Clone(w.sizes)
	f := &writer{url: url, json: w.json, seed: seed, written: w.written}
	f.inherited = func() []byte {
		c := *w
		c.sizes = sizes
		return c.content()
	}
	return f, f.create("Stream-Forked-From", w.url[strings.Index(w.url, "/ds/"):])
}

// publish makes a snapshot at the tail of the moment.
func (w *writer) publish() error {
	head, err := do(http.MethodHead, w.url, nil)
	if err != nil {
		return err
	}
	at := head.header.Get("Stream-Next-Offset")
	blob := []byte(fmt.Sprintf("state of %s at %s", w.url, at))
	a, err := do(http.MethodPut, w.url+"/snapshot/"+at, blob, "Content-Type", "text/plain")
	if err != nil {
		return err
	}
	if a.status != http.StatusNoContent {
		return fmt.Errorf("publish %s: %d %s", w.url, a.status, a.body)
	}
	w.start, w.snapshot, w.snapAt = len(w.content()), blob, at
	return nil
}

// verify reads the stream from its start, page by page, and compares. It counts
// the pages of each tier.
func (w *writer) verify(tiers map[string]int) error {
	want := w.content()[w.start:]
	offset := "-1"
	if w.snapshot != nil {
		if err := w.verifySnapshot(); err != nil {
			return err
		}
		offset = w.snapAt
	}
	for pos := 0; ; {
		a, err := do(http.MethodGet, w.url+"?offset="+offset, nil)
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("read %s at %s: %d %s", w.url, offset, a.status, a.body)
		}
		got := a.body
		if w.json {
			if got, err = stored(a.body); err != nil {
				return fmt.Errorf("read %s at %s: %w", w.url, offset, err)
			}
		}
		if len(got) > len(want)-pos || !bytes.Equal(got, want[pos:pos+len(got)]) {
			return fmt.Errorf("read %s at %s: bytes differ from the record after position %d", w.url, offset, w.start+pos)
		}
		tiers[a.header.Get("Server-Timing")]++
		pos += len(got)
		offset = a.header.Get("Stream-Next-Offset")
		if a.header.Get("Stream-Up-To-Date") == "true" {
			if pos != len(want) {
				return fmt.Errorf("read %s: ends after %d of %d bytes", w.url, pos, len(want))
			}
			return nil
		}
		if len(got) == 0 {
			return fmt.Errorf("read %s at %s: empty page before the tail", w.url, offset)
		}
	}
}

func (w *writer) verifySnapshot() error {
	a, err := do(http.MethodGet, w.url+"/snapshot", nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(a.body, w.snapshot) || a.header.Get("Stream-Snapshot-Offset") != w.snapAt {
		return fmt.Errorf("snapshot of %s is %q at %s", w.url, a.body, a.header.Get("Stream-Snapshot-Offset"))
	}
	if a, err = do(http.MethodGet, w.url, nil); err == nil && a.status != http.StatusGone {
		err = fmt.Errorf("read %s from the beginning: %d, want 410", w.url, a.status)
	}
	return err
}

// stored turns a JSON page into stored bytes.
func stored(page []byte) ([]byte, error) {
	var messages []json.RawMessage
	if err := json.Unmarshal(page, &messages); err != nil {
		return nil, err
	}
	var b []byte
	for _, m := range messages {
		b = append(append(b, m...), '\n')
	}
	return b, nil
}
