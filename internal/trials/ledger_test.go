//go:build integration

package trials_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// ledger is clients, each with a stream of its own, and their record of what was
// acknowledged to them.
type ledger struct {
	m       *machine
	entries []*entry
}

// entry is one client: a producer, whose retries are harmless.
type entry struct {
	m      *machine
	path   string
	json   bool
	seq    int
	next   string // what is not acknowledged yet
	random *rand.Rand

	mu     sync.Mutex
	stored strings.Builder // guarded by mu
}

// open makes streams of JSON and of bytes, in turns, and a ledger of them.
func open(m *machine, n int, header ...string) *ledger {
	m.t.Helper()
	l := &ledger{m: m}
	for i := range n {
		e := &entry{m: m, path: fmt.Sprintf("/ds/trial/s%d", i), json: i%2 == 0, random: rand.New(rand.NewPCG(7, uint64(i)))}
		m.create(e.path, e.contentType(), "", header...)
		l.entries = append(l.entries, e)
	}
	return l
}

func (e *entry) contentType() string {
	if e.json {
		return "application/json"
	}
	return "text/plain"
}

// append appends about size bytes that do not compress, and returns when they are
// acknowledged. It is for one goroutine.
func (e *entry) append(size int) error {
	for deadline := time.Now().Add(2 * patience); ; <-time.After(10 * time.Millisecond) {
		a, err := e.once(size)
		if err == nil && a.status < 300 {
			return nil
		}
		if err == nil && a.status != 503 || time.Now().After(deadline) {
			return fmt.Errorf("append %d to %s: %d %s, %w", e.seq, e.path, a.status, a.body, err)
		}
	}
}

// once appends without a second try. What is not acknowledged comes again with the next
// call, as it was.
func (e *entry) once(size int) (answer, error) {
	if e.next == "" {
		e.next = fmt.Sprintf(`{"seq":%d,"data":"%s"}`, e.seq, noise(e.random, size))
	}
	a, err := e.m.try("POST", e.path, e.next, append(by("p", 0, e.seq), "Content-Type: "+e.contentType())...)
	if err != nil || a.status >= 300 {
		return a, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stored.WriteString(e.next)
	if e.json {
		e.stored.WriteByte('\n')
	}
	e.seq, e.next = e.seq+1, ""
	return a, nil
}

// record is what a reader must get at least.
func (e *entry) record() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stored.String()
}

func openRandom() *rand.Rand { return rand.New(rand.NewPCG(3, 4)) }

func noise(r *rand.Rand, size int) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, size)
	for i := range b {
		b[i] = letters[r.Uint32()>>26]
	}
	return string(b)
}

// append has each client append n times.
func (l *ledger) append(n, size int) {
	l.m.t.Helper()
	var all sync.WaitGroup
	for _, e := range l.entries {
		all.Go(func() {
			for range n {
				if err := e.append(size); err != nil {
					l.m.t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// during appends all the time while f runs.
func (l *ledger) during(size int, f func()) {
	l.m.t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, e := range l.entries {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				if err := e.append(size); err != nil {
					l.m.t.Error(err)
					return
				}
			}
		})
	}
	defer all.Wait()
	defer close(stop)
	f()
}

// paths are the streams.
func (l *ledger) paths() (all []string) {
	for _, e := range l.entries {
		all = append(all, e.path)
	}
	return all
}

// holds reads every stream and compares with the record. Trouble of the object store
// is waited for.
func (l *ledger) holds(when string) {
	l.m.t.Helper()
	for _, e := range l.entries {
		got, err := e.read("-1")
		if err != nil {
			l.m.t.Errorf("%s: %v", when, err)
			continue
		}
		same(l.m.t, when+" "+e.path, got, e.record())
	}
}

// read follows the stream to its tail and returns what is stored. Only 503 is tried again.
func (e *entry) read(offset string) (string, error) {
	var all strings.Builder
	for deadline := time.Now().Add(2 * patience); ; {
		a, err := e.m.try("GET", e.path+"?offset="+offset, "")
		if (err != nil || a.status == 503) && time.Now().Before(deadline) {
			<-time.After(20 * time.Millisecond)
			continue
		}
		if err != nil || a.status != 200 {
			return "", fmt.Errorf("read %s at %s: %d %s, %w", e.path, offset, a.status, a.body, err)
		}
		if a.body == "" && !a.upToDate() {
			return "", fmt.Errorf("read %s at %s: empty before the tail", e.path, offset)
		}
		body, err := e.bytes(a.body)
		if err != nil {
			return "", fmt.Errorf("read %s at %s: %w", e.path, offset, err)
		}
		all.WriteString(body)
		offset = a.next()
		if a.upToDate() {
			return all.String(), nil
		}
	}
}

// bytes turns a page into stored bytes.
func (e *entry) bytes(page string) (string, error) {
	if !e.json || page == "" {
		return page, nil
	}
	var messages []json.RawMessage
	if err := json.Unmarshal([]byte(page), &messages); err != nil {
		return "", err
	}
	var all strings.Builder
	for _, m := range messages {
		all.Write(append(m, '\n'))
	}
	return all.String(), nil
}

// settle is the end of a trial: all equals the record, as it is, verified, cold, and
// after a start.
func (l *ledger) settle() {
	l.m.t.Helper()
	l.holds("at the end")
	l.m.cool(l.paths()...)
	l.holds("all cold")
	if code := l.m.end(); code != 0 {
		l.m.t.Errorf("the server ended with exit code %d", code)
	}
	l.m.verify(0)
	l.m.start()
	l.holds("started again")
}
