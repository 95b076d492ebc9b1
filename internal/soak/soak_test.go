//go:build integration

package soak_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/internal/config"
	"firn/internal/faultproxy"
	"firn/internal/versitygw"
)

var (
	flagBytes  = flag.String("soak.bytes", "40MiB", "stored bytes to write")
	flagKills  = flag.Int("soak.kills", 3, "kills on the way, beside those within troubles")
	flagBudget = flag.String("soak.budget", "4MiB", "hot.max_bytes")
	flagSeed   = flag.Uint64("soak.seed", 1, "seed of sizes and contents")
	flagEach   = flag.Duration("soak.trouble", time.Second, "how long each trouble of the object store lasts, and the rest after it")
)

// writers is how many clients write at a time.
const writers = 8

// TestKilledUnderLoad writes JSON and byte streams, forks and snapshots through a
// server with a small hot tier and an object store in trouble, kills it on the way, and
// reads everything back, first as it comes and then with all hot copies given up.
func TestKilledUnderLoad(t *testing.T) {
	total, err := config.ParseBytes(*flagBytes)
	if err != nil {
		t.Fatal(err)
	}
	s3 := versitygw.Start(t, versitygw.Options{})
	store := faultproxy.Start(t, faultproxy.Options{Upstream: s3.Endpoint, AccessKey: s3.AccessKey, SecretKey: s3.SecretKey})
	p := newProcess(t, s3, store.URL, "--hot.max-bytes", *flagBudget, "--hot.memtable-bytes", "4MiB", "--seal.target-bytes", "1MiB",
		"--seal.max-age", "5s", "--cache.max-bytes", "8MiB", "--sweep.grace", "10s", "--sweep.interval", "1s")
	p.start()
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { p.watchDisk(stop) })

	all := load(t, p, store, int64(total))
	close(stop)
	watch.Wait()
	p.keepCalls()
	compare(t, "after the load", all)
	p.verify("--online", "--admin-url", p.admin)

	for _, w := range all {
		for _, step := range []string{"seal", "evict"} {
			if a, err := do(http.MethodPost, p.admin+"/admin/streams"+w.url[len(p.url)+len("/ds"):]+"/"+step, nil); err != nil || a.status != http.StatusOK {
				t.Fatalf("%s %s: %d %s, %v", step, w.url, a.status, a.body, err)
			}
		}
	}
	if tiers := compare(t, "all cold", all); tiers[`tier;desc="hot"`] > 0 {
		t.Errorf("pages came from the hot tier although all was evicted: %v", tiers)
	}
	p.kill()
	p.start()
	compare(t, "all cold, after another kill", all)

	t.Logf("object calls before the comparisons, without those that a kill forgot: %v", p.calls)
	t.Logf("hot directory, one size a second, MiB: %v; largest %d", mib(p.disk), mib([]int64{slices.Max(append(p.disk, 0))})[0])
	if err := p.stop(); err != nil {
		t.Errorf("the server did not end well: %v", err)
	}
	p.verify(p.args[1:]...)
	t.Logf("hot directory at the end: %d MiB", dirSize(filepath.Join(p.dir, "data", "hot"))>>20)
}

// load writes until total bytes are acknowledged and the troubles of the object store are
// over. It kills the server at even distances on the way, and within each trouble.
func load(t *testing.T, p *process, store *faultproxy.Proxy, total int64) []*writer {
	t.Helper()
	var (
		written atomic.Int64
		g       errgroup.Group
		lists   [writers][]*writer
	)
	if a, err := do(http.MethodPut, p.url+"/ds/soak", nil); err != nil || a.status != http.StatusCreated {
		t.Fatalf("create bucket: %d, %v", a.status, err)
	}
	calm := make(chan struct{})
	go func() {
		defer close(calm)
		felt := trouble(store, *flagEach, func() {
			select {
			case <-time.After(10 * time.Millisecond):
			case <-t.Context().Done():
				runtime.Goexit()
			}
		}, p.restart)
		t.Logf("troubles of the object store and the requests that met them: %v", felt)
	}()
	more := func() bool {
		if written.Load() < total {
			return true
		}
		select {
		case <-calm:
			return false
		case <-time.After(50 * time.Millisecond): // enough is written: no haste
			return true
		}
	}
	for i := range writers {
		g.Go(func() (err error) {
			lists[i], err = write(p.url, i, more, &written)
			return err
		})
	}
	done := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for k := 1; k <= *flagKills; k++ {
			for written.Load() < total*int64(k)/int64(*flagKills+1) {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
			p.restart()
		}
	})
	err := g.Wait()
	close(done)
	killer.Wait()
	<-calm
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(lists[:]...)
}

// write is one client: a stream, now and then a fork of it or a snapshot.
func write(url string, i int, more func() bool, written *atomic.Int64) ([]*writer, error) {
	r := rand.New(rand.NewPCG(*flagSeed, uint64(i)))
	w := &writer{url: fmt.Sprintf("%s/ds/soak/s%d", url, i), json: i%2 == 0, seed: r.Uint64(), written: written}
	list := []*writer{w}
	if err := w.create(); err != nil {
		return nil, err
	}
	for n := 1; more(); n++ {
		of := list[r.IntN(len(list))]
		size := 1 + r.IntN(64<<10)
		if r.IntN(50) == 0 {
			size = 600 << 10
		}
		if err := of.append(size); err != nil {
			return nil, err
		}
		switch {
		case n%15 == 0 && len(list) < 5 && of.snapshot == nil:
			f, err := of.fork(fmt.Sprintf("%s/ds/soak/s%d-fork%d", url, i, len(list)), r.Uint64())
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		case n%25 == 0 && i >= writers-2:
			if err := of.publish(); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// compare reads every stream and compares it with its writer's record.
func compare(t *testing.T, when string, all []*writer) map[string]int {
	t.Helper()
	var (
		g     errgroup.Group
		mu    sync.Mutex
		tiers = make(map[string]int)
	)
	g.SetLimit(4)
	start := time.Now()
	for _, w := range all {
		g.Go(func() error {
			mine := make(map[string]int)
			err := w.verify(mine)
			mu.Lock()
			defer mu.Unlock()
			for k, n := range mine {
				tiers[k] += n
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	t.Logf("%s: %d streams equal the record, pages by tier %v, %v", when, len(all), tiers, time.Since(start).Round(time.Millisecond))
	return tiers
}

func mib(sizes []int64) []int64 {
	m := make([]int64, len(sizes))
	for i, s := range sizes {
		m[i] = s >> 20
	}
	return m
}
