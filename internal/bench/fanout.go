package bench

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"firn/internal/bench/exchange"
)

func fanoutCases(o Options) []testCase {
	polls := max(1, o.Readers/10)
	return []testCase{
		{fmt.Sprintf("%s by events, %d messages/s", plural(o.Readers, "reader"), o.PerSecond), func(ctx context.Context, r *rig) (*comparison, error) {
			return fanout(ctx, r, o.Readers, followEvents)
		}},
		{fmt.Sprintf("%s by long-poll, %d messages/s", plural(polls, "reader"), o.PerSecond), func(ctx context.Context, r *rig) (*comparison, error) {
			return fanout(ctx, r, polls, followPolls)
		}},
	}
}

// follow reads a stream live until its connection is closed. It calls ready when nothing
// that is appended from then on is missed, and passes text on that holds messages.
type follow func(c *exchange.Conn, e *exchange.Endpoint, id string, ready func(), take func([]byte)) error

func fanout(ctx context.Context, r *rig, readers int, how follow) (*comparison, error) {
	servers, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	cmp := new(comparison)
	for _, s := range servers {
		cmp.sides = append(cmp.sides, Side{Name: s.name, Measure: func(ctx context.Context, _, interval time.Duration) (Sample, error) {
			id := r.names(1)[0]
			if err := s.create(ctx, typeJSON, id); err != nil {
				return Sample{}, err
			}
			return deliver(ctx, s.server, id, readers, float64(r.o.PerSecond), interval, how)
		}})
	}
	cmp.figures = func(samples [][]Sample) []Figure {
		share := spread(each(samples[0], func(s Sample) float64 { return s.Extra["delivered"] }))
		return []Figure{Figure{Name: "messages delivered, of all", Spread: share}.atLeast(1)}
	}
	return cmp, nil
}

// audience is what the readers of one stream saw.
type audience struct {
	latencies []*Latency
	seen      []int64 // by reader
	wrong     atomic.Int64
	total     atomic.Int64
}

// receive takes text that holds messages of [message], in order.
func (a *audience) receive(reader int, text []byte) {
	now := time.Now().UnixNano()
	for {
		i := bytes.Index(text, []byte(`"at":`))
		if i < 0 {
			return
		}
		text = text[i+len(`"at":`):]
		at, rest := number(text)
		n, _ := number(bytes.TrimPrefix(rest, []byte(`,"n":`)))
		if n != a.seen[reader] {
			a.wrong.Add(1)
		}
		a.seen[reader] = n + 1
		a.latencies[reader].Record(time.Duration(now - at))
		a.total.Add(1)
	}
}

// message says when it was to be sent, and is the n-th.
func message(at time.Time, n int) []byte {
	return fmt.Appendf(nil, `{"at":%d,"n":%d,"text":"%0200d"}`, at.UnixNano(), n, n)
}

func number(text []byte) (n int64, rest []byte) {
	i := 0
	for i < len(text) && text[i] >= '0' && text[i] <= '9' {
		n = n*10 + int64(text[i]-'0')
		i++
	}
	return n, text[i:]
}

// deliveryTime is how long a message may be on its way.
const deliveryTime = 10 * time.Second

// deliver lets readers follow a stream to which messages are appended at a fixed rate.
// An operation of the sample is a message that a reader has got; its latency is counted
// from when it was to be sent.
func deliver(ctx context.Context, s *server, id string, readers int, perSecond float64, interval time.Duration, how follow) (Sample, error) {
	following, leave := context.WithCancel(ctx)
	var ready, gone sync.WaitGroup
	defer func() { leave(); gone.Wait() }()
	a := &audience{latencies: make([]*Latency, readers), seen: make([]int64, readers)}
	broke := make(chan error, readers)
	for i := range readers {
		a.latencies[i] = NewLatency()
		ready.Add(1)
		once := sync.OnceFunc(ready.Done)
		gone.Go(func() {
			defer once()
			c, err := s.streams.Dial(following)
			if err == nil {
				defer c.Close()
				err = how(c, s.streams, id, once, func(text []byte) { a.receive(i, text) })
			}
			if following.Err() == nil {
				broke <- err
			}
		})
	}
	ready.Wait()
	c, err := s.streams.Dial(following)
	if err != nil {
		return Sample{}, err
	}
	defer c.Close()
	began, sent := time.Now(), int64(0)
	for n := range max(1, int(perSecond*interval.Seconds())) {
		intended := began.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
		pause(ctx, time.Until(intended))
		answer, err := c.Do(s.streams.Request("POST", "/"+id, message(intended, n), typeJSON), nil)
		if err == nil && !answer.OK() {
			err = fmt.Errorf("append: %w %d", errStatus, answer.Status)
		}
		if err != nil {
			return failed(err), nil
		}
		sent++
	}
	want := sent * int64(readers)
	for patience := time.Now().Add(deliveryTime); a.total.Load() < want && time.Now().Before(patience) && ctx.Err() == nil && len(broke) == 0; {
		pause(ctx, time.Millisecond)
	}
	wall := time.Since(began)
	leave()
	gone.Wait()
	return a.sample(want, wall, broke), nil
}

func (a *audience) sample(want int64, wall time.Duration, broke chan error) Sample {
	got := a.total.Load()
	s := Sample{Ops: got, Rate: float64(got) / wall.Seconds(), Latency: NewLatency(),
		Extra: map[string]float64{"delivered": float64(got) / float64(want)}}
	for _, l := range a.latencies {
		s.Latency.Merge(l)
	}
	if missing := want - got; missing != 0 {
		s.Errors++
		s.Error = fmt.Errorf("live readers: %w: %d messages are missing", errContent, missing)
	}
	if wrong := a.wrong.Load(); wrong > 0 {
		s.Errors++
		s.Error = fmt.Errorf("live readers: %w: %d messages are out of order", errContent, wrong)
	}
	select {
	case err := <-broke:
		s.Errors++
		s.Error = err
	default:
	}
	return s
}

// followEvents reads by server-sent events, and comes back when the server ends them.
func followEvents(c *exchange.Conn, e *exchange.Endpoint, id string, ready func(), take func([]byte)) error {
	offset := "now"
	for {
		a, err := c.Begin(e.Request("GET", "/"+id+"?live=sse&offset="+offset, nil, "Accept: text/event-stream"))
		if err != nil {
			return err
		}
		if a.Status != 200 {
			return fmt.Errorf("follow by events: %w %d", errStatus, a.Status)
		}
		lines := c.Lines()
		for {
			line, err := lines.Next()
			if err != nil {
				break
			}
			if _, rest, ok := bytes.Cut(line, []byte(`"streamNextOffset":"`)); ok {
				next, _, _ := bytes.Cut(rest, []byte(`"`))
				offset = string(next)
				ready()
			} else if bytes.HasPrefix(line, []byte("data:")) {
				take(line)
			}
		}
		c.Close()
	}
}

// followPolls reads by long-poll.
func followPolls(c *exchange.Conn, e *exchange.Endpoint, id string, ready func(), take func([]byte)) error {
	a, err := c.Do(e.Request("GET", "/"+id+"?offset=now", nil), nil)
	if err != nil {
		return err
	}
	var body []byte
	for {
		if !a.OK() {
			return fmt.Errorf("follow by long-poll: %w %d", errStatus, a.Status)
		}
		target := "/" + id + "?live=long-poll&offset=" + string(a.Next)
		if len(a.Cursor) > 0 {
			target += "&cursor=" + string(a.Cursor)
		}
		ready()
		body = body[:0]
		if a, err = c.Do(e.Request("GET", target, nil), func(b []byte) { body = append(body, b...) }); err != nil {
			return err
		}
		take(body)
	}
}

// readersHeld keeps n idle readers connected until it is ended.
func readersHeld(ctx context.Context, s *server, id string, n int) (end func(), err error) {
	following, leave := context.WithCancel(ctx)
	var ready, gone sync.WaitGroup
	var waiting atomic.Int64
	for range n {
		ready.Add(1)
		once := sync.OnceFunc(ready.Done)
		gone.Go(func() {
			defer once()
			if c, err := s.streams.Dial(following); err == nil {
				defer c.Close()
				followEvents(c, s.streams, id, func() { waiting.Add(1); once() }, func([]byte) {})
			}
		})
	}
	ready.Wait()
	end = func() { leave(); gone.Wait() }
	if got := waiting.Load(); got < int64(n) {
		end()
		return nil, fmt.Errorf("live readers: %w: %s of %s are there", errContent, strconv.FormatInt(got, 10), strconv.Itoa(n))
	}
	return end, nil
}
