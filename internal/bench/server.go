package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"firn/internal/bench/exchange"
)

var (
	// errStatus: a server has answered with a status that no measurement is made of.
	errStatus = errors.New("unexpected status")
	// errContent: an answer does not hold what was to be in it.
	errContent = errors.New("unexpected content")
)

// Content types of the streams that are made.
const (
	typeJSON  = "Content-Type: application/json"
	typeBytes = "Content-Type: application/octet-stream"
)

// server is a server that is measured.
type server struct {
	streams *exchange.Endpoint // where streams live
	bucket  *exchange.Endpoint // nil on a flat surface
	admin   *exchange.Endpoint // nil when it is not known
	process *process           // nil when it was not started here

	mu   sync.Mutex
	made []string // streams to be deleted, guarded by mu
}

// bucketName is the bucket that all streams are made in.
const bucketName = "bench"

// use makes the bucket.
func (s *server) use(ctx context.Context, url string, flat bool, fields ...string) error {
	root, err := exchange.Parse(url, fields...)
	if err != nil || flat {
		s.streams = root
		return err
	}
	s.bucket = root.Below("/ds/" + bucketName)
	s.streams = s.bucket
	_, err = ask(ctx, s.bucket, s.bucket.Request("PUT", "", nil), 200, 201, 204, 409)
	return err
}

// create makes streams.
func (s *server) create(ctx context.Context, contentType string, ids ...string) error {
	s.note(ids...)
	return inParallel(ctx, s.streams, len(ids), func(c *exchange.Conn, i int) error {
		a, err := c.Do(s.streams.Request("PUT", "/"+ids[i], nil, contentType), nil)
		if err == nil && a.Status != 201 {
			err = fmt.Errorf("create stream: %w %d", errStatus, a.Status)
		}
		return err
	})
}

// note remembers what is to be deleted of somebody else's server.
func (s *server) note(ids ...string) {
	if s.process == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.made = append(s.made, ids...)
	}
}

// inParallel makes n exchanges over a few connections.
func inParallel(ctx context.Context, e *exchange.Endpoint, n int, do func(c *exchange.Conn, i int) error) error {
	conns := min(n, 64)
	var next atomic.Int64
	errs := make(chan error, conns)
	for range conns {
		go func() {
			c, err := e.Dial(ctx)
			if err != nil {
				errs <- err
				return
			}
			defer c.Close()
			for err == nil {
				i := int(next.Add(1) - 1)
				if i >= n {
					break
				}
				err = do(c, i)
			}
			errs <- err
		}()
	}
	var all error
	for range conns {
		if err := <-errs; err != nil {
			all = err
		}
	}
	return all
}

// answer is one that is kept.
type answer struct {
	exchange.Answer
	body []byte
}

// ask makes one request, whose status must be one of the given.
func ask(ctx context.Context, e *exchange.Endpoint, request []byte, statuses ...int) (answer, error) {
	c, err := e.Dial(ctx)
	if err != nil {
		return answer{}, err
	}
	defer c.Close()
	var a answer
	got, err := c.Do(request, func(b []byte) { a.body = append(a.body, b...) })
	if err != nil {
		return a, err
	}
	a.Answer = *got
	for _, s := range statuses {
		if a.Status == s {
			return a, nil
		}
	}
	line, _, _ := strings.Cut(string(request), "\r\n")
	return a, fmt.Errorf("%s: %w %d: %.200s", line, errStatus, a.Status, a.body)
}

// fill appends size bytes of records to a stream, and returns how many there are stored.
func (s *server) fill(ctx context.Context, id, contentType string, size int64) (int64, error) {
	c, err := s.streams.Dial(ctx)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	p := newPayload(contentType)
	stored := int64(0)
	for stored < size {
		body, length := p.body(int(min(256<<10, size-stored)), 256)
		a, err := c.Do(s.streams.Request("POST", "/"+id, body, contentType), nil)
		if err != nil {
			return 0, err
		}
		if !a.OK() {
			return 0, fmt.Errorf("fill stream: %w %d", errStatus, a.Status)
		}
		stored += length
	}
	return stored, nil
}

// move seals or evicts a stream.
func (s *server) move(ctx context.Context, action, id string) error {
	_, err := ask(ctx, s.admin, s.admin.Request("POST", "/admin/streams/"+bucketName+"/"+id+"/"+action, nil), 200)
	return err
}

// metrics reads the samples of the server, by name and labels.
func (s *server) metrics(ctx context.Context) (map[string]float64, error) {
	a, err := ask(ctx, s.admin, s.admin.Request("GET", "/metrics", nil), 200)
	if err != nil {
		return nil, err
	}
	samples := make(map[string]float64)
	for line := range strings.Lines(string(a.body)) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			if v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64); err == nil {
				samples[line[:i]] = v
			}
		}
	}
	return samples, nil
}

// memory returns the bytes that live on the server's heap and its goroutines' stacks.
func (s *server) memory(ctx context.Context) (float64, error) {
	// Twice: what pools hold survives one collection.
	for range 2 {
		if _, err := ask(ctx, s.admin, s.admin.Request("GET", "/debug/pprof/heap?gc=1", nil), 200); err != nil {
			return 0, err
		}
	}
	m, err := s.metrics(ctx)
	return m["go_memstats_heap_alloc_bytes"] + m["go_memstats_stack_inuse_bytes"], err
}

// close stops a server that was started here, and deletes what was made on another.
func (s *server) close() error {
	if s.process != nil {
		return s.process.stop()
	}
	// Also when the run was interrupted: the streams are somebody else's disk.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := inParallel(ctx, s.streams, len(s.made), func(c *exchange.Conn, i int) error {
		a, err := c.Do(s.streams.Request("DELETE", "/"+s.made[i], nil), nil)
		if err == nil && !a.OK() && a.Status != 404 {
			err = fmt.Errorf("delete stream: %w %d", errStatus, a.Status)
		}
		return err
	})
	if s.bucket != nil && err == nil {
		// Another run may be in there.
		_, err = ask(ctx, s.bucket, s.bucket.Request("DELETE", "", nil), 200, 204, 404, 409)
	}
	return err
}
