package trials_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/api"
)

func TestProducers(t *testing.T) {
	t.Run("PR-fdd", killedProducer)
	t.Run("PR-0d4", retriesOfSealedAppends)
	t.Run("PR-208", refusedAppendsLeaveTheSequence)
	t.Run("PR-9db", forksHaveTheirOwnProducers)
}

// by are the headers of a producer.
func by(id string, epoch, seq int) []string {
	return []string{"Producer-Id: " + id, "Producer-Epoch: " + strconv.Itoa(epoch), "Producer-Seq: " + strconv.Itoa(seq)}
}

func (c *client) produce(status int, path, contentType, body string, seq int) answer {
	c.t.Helper()
	return c.want(status, "POST", path, body, append(by("p", 0, seq), "Content-Type: "+contentType)...)
}

// killedProducer appends through 8 kills (200 with -full) at random moments and repeats
// what was not answered.
func killedProducer(t *testing.T) {
	p := spawn(t, "--seal.target-bytes", "64KiB", "--seal.max-age", "1s")
	const path = "/ds/trial/s"
	p.create(path, "text/plain", "")
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		defer close(stop)
		random := rand.New(rand.NewPCG(1, 2))
		for range scaled(8, 200) {
			<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
			p.kill()
			p.start()
		}
	})
	var model strings.Builder
	retries := 0
	for seq, running := 0, true; running; seq++ {
		text := fmt.Sprintf("%06d %s\n", seq, strings.Repeat("x", seq%300))
		for deadline := time.Now().Add(patience); ; {
			a, err := p.try("POST", path, text, append(by("p", 0, seq), "Content-Type: text/plain")...)
			if err == nil && (a.status == 200 || a.status == 204) {
				break
			}
			if err == nil && a.status != 503 || time.Now().After(deadline) {
				t.Fatalf("seq %d: %d %s, %v", seq, a.status, a.body, err)
			}
			retries++
		}
		model.WriteString(text)
		select {
		case <-stop:
			running = false
		default:
		}
	}
	killer.Wait()
	if retries == 0 {
		t.Error("nothing was repeated: the kills hit nothing")
	}
	p.holds(path, model.String())
	p.kill()
	p.start()
	p.holds(path, model.String())
}

func retriesOfSealedAppends(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	want := ""
	for seq := range 100 {
		want += fmt.Sprintln(seq)
		s.produce(200, path, "text/plain", fmt.Sprintln(seq), seq)
	}
	s.seal(path)
	s.restart()
	for _, seq := range []int{99, 42} {
		if a := s.produce(204, path, "text/plain", "again", seq); a.header.Get("Producer-Seq") != "99" {
			t.Errorf("retry of %d: %v", seq, a.header)
		}
	}
	s.produce(200, path, "text/plain", "100\n", 100)
	if a := s.produce(409, path, "text/plain", "gap", 102); a.header.Get("Producer-Expected-Seq") != "101" || a.header.Get("Producer-Received-Seq") != "102" {
		t.Errorf("gap: %v", a.header)
	}
	s.holds(path, want+"100\n")
}

func refusedAppendsLeaveTheSequence(t *testing.T) {
	s := serve(t, func(o *options) { o.api = api.Options{AppendBytes: 1000} })
	const path = "/ds/trial/s"
	s.create(path, "application/json", "[]")
	for seq := range 5 {
		s.produce(200, path, "application/json", "0", seq)
	}
	tail := s.tail(path)
	s.produce(400, path, "application/json", "[1,2,{]", 5)
	s.produce(400, path, "application/json", "[]", 5)
	s.produce(400, path, "application/json", "", 5)
	s.produce(409, path, "text/plain", "[1,2]", 5)
	s.produce(413, path, "application/json", `"`+strings.Repeat("x", 1000)+`"`, 5)
	cut := s.dial()
	send(t, cut, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"+strings.Join(by("p", 0, 5), "\r\n")+"\r\nContent-Length: 100\r\n\r\n[1,2]")
	cut.CloseWrite()
	if got := answers(t, cut); len(got) > 0 && got[0].status < 400 {
		t.Errorf("cut body: got %+v", got)
	}
	if got := s.tail(path); got != tail {
		t.Errorf("tail is %s, was %s", got, tail)
	}
	s.produce(200, path, "application/json", "[1,2]", 5)
	s.holds(path, "[0,0,0,0,0,1,2]")
}

func forksHaveTheirOwnProducers(t *testing.T) {
	for _, cold := range []bool{false, true} {
		s := serve(t)
		const source, fork = "/ds/trial/s", "/ds/trial/f"
		s.create(source, "text/plain", "")
		for seq := range 4 {
			s.produce(200, source, "text/plain", strconv.Itoa(seq), seq)
		}
		if cold {
			s.seal(source)
			s.restart()
		}
		s.want(201, "PUT", fork, "", "Stream-Forked-From: "+source)
		s.produce(200, fork, "text/plain", "f", 0)
		s.produce(204, source, "text/plain", "again", 3)
		s.produce(204, fork, "text/plain", "again", 0)
		s.produce(200, fork, "text/plain", "g", 1)
		s.produce(200, source, "text/plain", "4", 4)
		s.holds(fork, "0123fg")
		s.holds(source, "01234")
	}
}
