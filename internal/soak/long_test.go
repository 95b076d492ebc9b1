//go:build integration

package soak_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/config"
	"firn/internal/versitygw"
)

var (
	flagLong   = flag.String("soak.long", "48MiB", "bytes of one long stream")
	flagTarget = flag.String("soak.target", "4MiB", "seal.target_bytes of the long stream")
)

// TestLongStream writes one stream that is many times as large as the hot tier, and
// counts what that costs in calls of the object store: a PUT for each target's worth, and
// for a reader of all of it no more than about a GET for each MiB.
func TestLongStream(t *testing.T) {
	total, err := config.ParseBytes(*flagLong)
	if err != nil {
		t.Fatal(err)
	}
	target, err := config.ParseBytes(*flagTarget)
	if err != nil {
		t.Fatal(err)
	}
	s3 := versitygw.Start(t, versitygw.Options{})
	p := newProcess(t, s3, s3.Endpoint, "--hot.max-bytes", strconv.FormatUint(uint64(max(3*target, total/20)), 10), "--seal.target-bytes", *flagTarget,
		"--backup.interval", "0s", "--sweep.interval", "1h", "--scrub.period", "0s")
	p.start()
	if a, err := do(http.MethodPut, p.url+"/ds/soak", nil); err != nil || a.status != http.StatusCreated {
		t.Fatalf("create bucket: %d, %v", a.status, err)
	}
	w := &writer{url: p.url + "/ds/soak/long", seed: *flagSeed, written: new(atomic.Int64)}
	if err := w.create(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for w.written.Load() < int64(total) {
		if err := w.append(1 << 20); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(2 * time.Minute); p.metrics("firn_hot_bytes")[`firn_hot_bytes{state="unsealed"}`] >= float64(target); <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not sealed in two minutes")
		}
	}
	wrote := p.metrics("firn_object_")
	t.Logf("wrote and sealed %d MiB in %v", w.written.Load()>>20, time.Since(start).Round(time.Second))
	puts, segments := sum(wrote, `firn_object_calls_total{op="put"`), float64(total/target)
	// Beside segments a server has its name in the bucket, and whether conditions hold there.
	if most := 1.1*segments + 8; puts > most {
		t.Errorf("%v PUTs for %v times the target, want %v at most", puts, segments, most)
	}
	if stored, most := wrote["firn_object_written_bytes_total"], 1.02*float64(total)+1e6; stored > most {
		t.Errorf("%v bytes were written to the object store, want %v at most", stored, most)
	}

	t.Logf("%v PUTs, %.0f bytes written", puts, wrote["firn_object_written_bytes_total"])

	for _, step := range []string{"seal", "evict"} {
		if a, err := do(http.MethodPost, p.admin+"/admin/streams/soak/long/"+step, nil); err != nil || a.status != http.StatusOK {
			t.Fatalf("%s: %d, %v", step, a.status, err)
		}
	}
	wrote, start = p.metrics("firn_object_"), time.Now()
	if err := w.compare(); err != nil {
		t.Fatal(err)
	}
	read := p.metrics("firn_object_")
	gets := sum(read, `firn_object_calls_total{op="get"`) - sum(wrote, `firn_object_calls_total{op="get"`)
	t.Logf("read in %v: %v GETs, %.2f a MiB", time.Since(start).Round(time.Second), gets, gets/float64(total>>20))
	if gets > 1.1*float64(total>>20)+8 {
		t.Errorf("%v GETs for %d MiB", gets, total>>20)
	}
	if lists := sum(read, `firn_object_calls_total{op="list"`); lists > 1 { // one looks whether the prefix is new
		t.Errorf("%v LISTs", lists)
	}
	p.kill()
	p.start()
	if err := w.compare(); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
	p.verify(p.args[1:]...)
}

// sum adds the samples whose names begin with the prefix.
func sum(samples map[string]float64, prefix string) (all float64) {
	for name, v := range samples {
		if len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			all += v
		}
	}
	return all
}

// compare reads the stream of bytes page by page, beside what was appended: neither is
// ever held as a whole.
func (w *writer) compare() error {
	var want []byte
	next, offset := 0, "-1"
	for {
		a, err := do(http.MethodGet, w.url+"?offset="+offset, nil)
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("read at %s: %d %s", offset, a.status, a.body)
		}
		for got := a.body; len(got) > 0; {
			if len(want) == 0 {
				if next == len(w.sizes) {
					return fmt.Errorf("read at %s: there is more than was written", offset)
				}
				_, want = w.payload(next, w.sizes[next])
				next++
			}
			n := min(len(got), len(want))
			if !bytes.Equal(got[:n], want[:n]) {
				return fmt.Errorf("read at %s: bytes differ from those of append %d", offset, next)
			}
			got, want = got[n:], want[n:]
		}
		offset = a.header.Get("Stream-Next-Offset")
		if a.header.Get("Stream-Up-To-Date") == "true" {
			if next < len(w.sizes) || len(want) > 0 {
				return fmt.Errorf("the stream ends within append %d of %d", next, len(w.sizes))
			}
			return nil
		}
	}
}
