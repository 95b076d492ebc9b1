package trials_test

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"firn/compactor"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
)

func TestAppends(t *testing.T) {
	t.Run("CR-749", parallelAppends)
	t.Run("CR-150", readersBesideAWriter)
	t.Run("CR-954", offsetOfALongerStream)
	t.Run("CR-54b", oddOffsets)
	t.Run("CR-b42", positionsBeyond32Bits)
	t.Run("CR-0f6", streamSeqIsKept)
}

func parallelAppends(t *testing.T) {
	s := serve(t)
	const path, n = "/ds/trial/s", 50
	s.create(path, "text/plain", "")
	var lines []string
	for round := range 2 {
		var g errgroup.Group
		offsets := make([]string, n)
		for i := range n {
			line := fmt.Sprintf("line-%d-%03d-0123456789\n", round, i)
			lines = append(lines, line)
			g.Go(func() error {
				a, err := s.try("POST", path, line, "Content-Type: text/plain")
				if offsets[i] = a.next(); err == nil && a.status != 204 {
					err = fmt.Errorf("append: %d", a.status)
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(offsets)
		if len(slices.Compact(slices.Clone(offsets))) != n {
			t.Error("two appends got the same offset")
		}
		s.restart()
		got, tail, err := s.chain(path, "-1")
		if err != nil {
			t.Fatal(err)
		}
		if head := s.tail(path); tail != offsets[n-1] || head != tail {
			t.Errorf("largest offset %s, read to %s, HEAD says %s", offsets[n-1], tail, head)
		}
		is := strings.SplitAfter(strings.TrimSuffix(got, "\n")+"\n", "\n")
		is = slices.DeleteFunc(is, func(l string) bool { return l == "" })
		slices.Sort(is)
		if slices.Sort(lines); !slices.Equal(is, lines) {
			t.Errorf("%d lines, want %d, each once", len(is), len(lines))
		}
	}
}

func readersBesideAWriter(t *testing.T) {
	for _, sealing := range []bool{false, true} {
		s := serve(t, func(o *options) {
			o.tier = tier.Options{ReadBytes: 32 << 10}
			o.policy = compactor.Policy{Target: 16 << 10}
		})
		const path = "/ds/trial/s"
		s.create(path, "text/plain", "")
		var model strings.Builder
		var done atomic.Bool
		var g errgroup.Group
		got := make([]strings.Builder, 8)
		for i := range got {
			g.Go(func() error {
				for offset := "-1"; ; {
					last := done.Load()
					a, err := s.try("GET", path+"?offset="+offset, "")
					if err != nil || a.status != 200 {
						return fmt.Errorf("read at %s: %d %s, %v", offset, a.status, a.body, err)
					}
					if offset != "-1" && position(a.next())-position(offset) != len(a.body) {
						return fmt.Errorf("read at %s: %d bytes, next offset %s", offset, len(a.body), a.next())
					}
					got[i].WriteString(a.body)
					if offset = a.next(); last && a.upToDate() {
						return nil
					}
				}
			})
		}
		for i := range scaled(120, 5000) {
			text := strings.Repeat(fmt.Sprintf("%d,", i), 1+i%500)
			s.append(path, "text/plain", text)
			model.WriteString(text)
			if sealing && i%20 == 0 {
				s.seal(path)
			}
		}
		done.Store(true)
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			same(t, fmt.Sprintf("reader %d, sealing %t", i, sealing), got[i].String(), model.String())
		}
	}
}

func offsetOfALongerStream(t *testing.T) {
	s := serve(t)
	past := s.create("/ds/trial/a", "text/plain", strings.Repeat("x", 1<<20))
	s.create("/ds/trial/b", "text/plain", "0123456789")
	refused := func(what, offset string) {
		t.Helper()
		for _, query := range []string{"", "&live=long-poll", "&live=sse"} {
			if a := s.do("GET", "/ds/trial/b?offset="+offset+query, ""); a.status != 400 {
				t.Errorf("%s%s: got %d", what, query, a.status)
			}
		}
		s.want(400, "PUT", "/ds/trial/f", "", "Stream-Forked-From: /ds/trial/b", "Stream-Fork-Offset: "+offset)
	}
	refused("offset of another stream", past)
	refused("past the tail", at(s.tail("/ds/trial/b"), 11))
	// The name is deleted and made again.
	s.want(204, "DELETE", "/ds/trial/b", "")
	old := s.create("/ds/trial/b", "text/plain", "0123456789")
	s.want(204, "DELETE", "/ds/trial/b", "")
	s.create("/ds/trial/b", "text/plain", "abcdefghijklmnop")
	refused("offset of an earlier life", old)
}

// oddOffsets has what internal/api's TestOffsets leaves: what the server itself says.
func oddOffsets(t *testing.T) {
	s := serve(t)
	tail := s.create("/ds/trial/s", "text/plain", "")
	for _, offset := range []string{"now", "-1"} {
		a := s.want(200, "GET", "/ds/trial/s?offset="+offset, "")
		if a.next() != tail || a.next() == offset || !a.upToDate() || a.body != "" {
			t.Errorf("%s on an empty stream: %q, %v", offset, a.body, a.header)
		}
	}
	s.append("/ds/trial/s", "text/plain", "x")
	if a, b := s.do("GET", "/ds/trial/s", ""), s.do("GET", "/ds/trial/s?offset=-1", ""); a.body != b.body || a.next() != b.next() {
		t.Errorf("no offset gives %q, -1 gives %q", a.body, b.body)
	}
}

// positionsBeyond32Bits fills a stream with 6 MiB, or with -full with 5 GiB. Without it
// only the cold tier is taken beyond 32 bits, by a segment from there.
func positionsBeyond32Bits(t *testing.T) {
	s := serve(t, func(o *options) {
		o.compacts, o.tier = true, tier.Options{ReadBytes: 1 << 20}
		o.policy = compactor.Policy{Target: 1 << 20, Budget: 2 << 20, HardBytes: 1 << 30}
	})
	segmentBeyond32Bits(t, s)
	const path = "/ds/trial/s"
	size := scaled(256<<10, 8<<20)
	s.create(path, "application/octet-stream", "")
	want := sha256.New()
	random := rand.New(rand.NewPCG(1, 2))
	block := make([]byte, size)
	remembered := map[string]string{}
	tail := ""
	for i := range scaled(24, 640) {
		for j := 0; j < size; j += 64 {
			copy(block[j:], fmt.Sprintf("%08x %d\n", random.Uint32(), i))
		}
		want.Write(block)
		before := s.tail(path)
		tail = s.append(path, "application/octet-stream", string(block))
		if position(tail) != (i+1)*size {
			t.Fatalf("append %d ends at %s", i, tail)
		}
		remembered[before] = string(block[:size/2])
	}
	check := func() {
		got := sha256.New()
		offset := "-1"
		for {
			a := s.want(200, "GET", path+"?offset="+offset, "")
			got.Write([]byte(a.body))
			if offset = a.next(); a.upToDate() {
				break
			}
		}
		if offset != tail || digest(got) != digest(want) {
			t.Errorf("content differs, or ends at %s and not at %s", offset, tail)
		}
		for offset, want := range remembered {
			if got := s.want(200, "GET", path+"?offset="+offset, "").body; !strings.HasPrefix(got, want) && !strings.HasPrefix(want, got) {
				t.Errorf("other bytes at %s", offset)
			}
		}
	}
	check()
	s.seal(path)
	s.restart()
	check()
}

func segmentBeyond32Bits(t *testing.T, s *server) {
	const from = 5<<30 + 12345
	e, err := segment.NewEncoder(segment.Options{FrameBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	name := stream.Name{Bucket: "trial", ID: "far"}
	w := e.NewWriter(segment.Meta{Store: s.hot.ID(), Name: name, Incarnation: 7, Life: 1, Mode: stream.Bytes, ContentType: "text/plain", From: from})
	content := []byte(strings.Repeat("0123456789", 1000))
	if err := w.Append(content, 1); err != nil {
		t.Fatal(err)
	}
	sealed, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	key := s.cold.SegmentKey(name, 7, stream.Bytes, from, from+uint64(len(content)))
	sealed.Name(key)
	if _, err := s.cold.PutSegment(t.Context(), key, sealed); err != nil {
		t.Fatal(err)
	}
	got, err := s.cold.Read(t.Context(), nil, sealed.Refs[0], from+2345, from+6789)
	if err != nil || string(got) != string(content[2345:6789]) {
		t.Errorf("beyond 32 bits: %d bytes, %v", len(got), err)
	}
}

func digest(h hash.Hash) string { return fmt.Sprintf("%x", h.Sum(nil)) }

func streamSeqIsKept(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	post := func(status int, seqs ...string) {
		t.Helper()
		for _, seq := range seqs {
			s.want(status, "POST", path, seq, "Content-Type: text/plain", "Stream-Seq: "+seq)
		}
	}
	post(204, "b")
	s.restart()
	post(409, "a", "b")
	s.seal(path)
	s.restart()
	post(409, "a", "b", "B")
	post(204, "b0")
	s.create("/ds/trial/n", "text/plain", "")
	s.want(204, "POST", "/ds/trial/n", "x", "Content-Type: text/plain", "Stream-Seq: 9")
	s.want(409, "POST", "/ds/trial/n", "x", "Content-Type: text/plain", "Stream-Seq: 10")
	s.holds(path, "bb0")
}
