package trials_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// foldingClients has a writer, a publisher, clients that fold the stream into a state,
// and the compactor at work, while the server is killed twice within two seconds (five
// times in 15 minutes with -full). Message n of the stream is the number n, and the
// state is the last number: what is missed or repeated shows at once.
func foldingClients(t *testing.T) {
	f := &folding{process: spawn(t, "--seal.target-bytes", "64KiB", "--sweep.interval", "1s"), path: "/ds/trial/s", stop: make(chan struct{})}
	f.create(f.path, "application/json", "")
	var g errgroup.Group
	g.Go(f.write)
	g.Go(f.publish)
	g.Go(f.compact)
	for range scaled(4, 10) {
		g.Go(f.follow)
	}
	var killer sync.WaitGroup
	killer.Go(func() {
		defer close(f.stop)
		kills := scaled(2, 5)
		for i := range kills + 1 {
			<-time.After(time.Duration(scaled(600, 150_000)) * time.Millisecond)
			if i < kills {
				f.kill()
				f.start()
			}
		}
	})
	killer.Wait()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	last, _, err := f.fold()
	if err != nil || last < 10 {
		t.Errorf("at the end: %d, %v", last, err)
	}
}

type folding struct {
	*process
	path string
	stop chan struct{}
}

func (f *folding) running() bool {
	select {
	case <-f.stop:
		return false
	default:
		return true
	}
}

// again repeats what a kill has interrupted.
func (f *folding) again(method, path, body string, header ...string) (a answer, err error) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		a, err = f.try(method, path, body, header...)
		if err == nil && a.status != 503 {
			return a, nil
		}
	}
	return a, fmt.Errorf("%s %s: no answer but %d, %v", method, path, a.status, err)
}

func (f *folding) write() error {
	for n := 1; f.running(); n++ {
		a, err := f.again("POST", f.path, fmt.Sprintf("[%d]", n), append(by("w", 0, n-1), "Content-Type: application/json")...)
		if err != nil || a.status/100 != 2 {
			return fmt.Errorf("append %d: %d %s, %v", n, a.status, a.body, err)
		}
	}
	return nil
}

func (f *folding) publish() error {
	for f.running() {
		last, offset, err := f.fold()
		if err != nil {
			return err
		}
		a, err := f.again("PUT", f.path+"/snapshot/"+offset, strconv.Itoa(last))
		if err != nil || a.status != 204 && a.status != 410 {
			return fmt.Errorf("publish: %d %s, %v", a.status, a.body, err)
		}
	}
	return nil
}

func (f *folding) compact() error {
	for f.running() {
		// Not answered while the server is down.
		f.operate(f.path, "seal")
		f.operate(f.path, "evict")
		<-time.After(20 * time.Millisecond)
	}
	return nil
}

func (f *folding) follow() error {
	for f.running() {
		if _, _, err := f.fold(); err != nil {
			return err
		}
	}
	return nil
}

// fold takes a bootstrap and reads on to the tail, or until a snapshot overtakes it. It
// returns the state and where the state is of.
func (f *folding) fold() (last int, offset string, err error) {
	a, err := f.again("GET", f.path+"/bootstrap", "")
	if err != nil {
		return 0, "", err
	}
	b, err := takeApart(a)
	if err != nil {
		return 0, "", err
	}
	if b.parts[0] != "" {
		if last, err = strconv.Atoi(b.parts[0]); err != nil {
			return 0, "", fmt.Errorf("snapshot: %w", err)
		}
	}
	if last, err = count(last, b.parts[1:]); err != nil {
		return 0, "", fmt.Errorf("bootstrap from %s to %s: %w", a.header.Get("Stream-Snapshot-Offset"), a.next(), err)
	}
	for offset = a.next(); !a.upToDate(); offset = a.next() {
		if a, err = f.again("GET", f.path+"?offset="+offset, ""); err == nil && a.status == 410 {
			return last, offset, nil
		}
		var page []int
		if err == nil {
			err = json.Unmarshal([]byte(a.body), &page)
		}
		if err == nil {
			last, err = count(last, page)
		}
		if err != nil {
			return 0, "", fmt.Errorf("read at %s: %d: %w", offset, a.status, err)
		}
	}
	return last, offset, nil
}

// count folds messages into a state.
func count[T any](last int, messages []T) (int, error) {
	for _, m := range messages {
		if fmt.Sprint(m) != strconv.Itoa(last+1) {
			return 0, fmt.Errorf("%v after %d", m, last)
		}
		last++
	}
	return last, nil
}
