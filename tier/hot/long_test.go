package hot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

const longSegment = 1 << 20

// long is a store with a stream of many segments.
type long struct {
	testing.TB
	dir     string
	s       *hot.Store
	rec     *hot.Record
	objects int
}

func newLong(tb testing.TB, segments int) *long {
	tb.Helper()
	l := &long{TB: tb, dir: tb.TempDir()}
	l.open()
	r, err := l.s.Create(context.Background(), hot.Create{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: "long"}, ContentType: "text/plain", Mode: stream.Bytes,
	})
	l.must(err)
	l.must(l.s.Lengthen(r.Record.ID, segments, longSegment))
	l.look(r.Record.ID)
	return l
}

func (l *long) open() {
	var err error
	l.s, err = hot.Open(l.dir, hot.Options{Fatal: func(m string) { panic(m) }})
	l.must(err)
}

func (l *long) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *long) look(id stream.ID) {
	l.Helper()
	v := l.s.View()
	defer v.Close()
	var err error
	l.rec, err = v.Incarnation(id)
	l.must(err)
}

// intend returns the key of a new object.
func (l *long) intend() string {
	l.objects++
	key := fmt.Sprintf("new/%d", l.objects)
	l.must(l.s.Intend(context.Background(), key))
	return key
}

// seal appends n bytes and seals them.
func (l *long) seal(n int) {
	l.Helper()
	ctx := context.Background()
	_, err := l.s.Append(ctx, &hot.Append{ID: l.rec.ID, ContentType: "text/plain", Payload: make([]byte, n)})
	l.must(err)
	l.look(l.rec.ID)
	ref := segment.Ref{
		Object: l.intend(), Length: 100, From: l.rec.Sealed, To: l.rec.Tail,
		Frames: []segment.Frame{{Length: 100, Content: uint32(l.rec.Unsealed()), TimeMs: 1}},
	}
	l.must(l.s.Seal(ctx, hot.Seal{ID: l.rec.ID, Ref: ref, Size: 200}))
	l.look(l.rec.ID)
}

func (l *long) publish(at uint64) {
	l.Helper()
	l.must(l.s.Publish(context.Background(), hot.Publish{ID: l.rec.ID, Snapshot: hot.Snapshot{Position: at, Object: l.intend(), Size: 1}}))
	l.look(l.rec.ID)
}

// find looks up the segment at a random position.
func (l *long) find(r *rand.Rand) {
	v := l.s.View()
	defer v.Close()
	pos := l.rec.Floor + r.Uint64N(l.rec.Sealed-l.rec.Floor)
	ref, err := v.Segment(l.rec.ID, pos)
	l.must(err)
	if ref.From > pos || ref.To <= pos {
		l.Fatalf("segment [%d,%d) for %d", ref.From, ref.To, pos)
	}
}

func (l *long) fork(id string) stream.ID {
	r, err := l.s.Create(context.Background(), hot.Create{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: id}, ContentType: "text/plain", Mode: stream.Bytes,
		Fork: &hot.CreateFork{Source: l.rec.ID, From: l.rec.Name, Position: l.rec.Tail / 2},
	})
	l.must(err)
	return r.Record.ID
}

// trim lets go of what is to be, in steps, and returns how many there were.
func (l *long) trim() (segments int) {
	for from := uint64(0); ; {
		r, err := l.s.TrimFrom(context.Background(), l.rec.ID, from, 256)
		l.must(err)
		if segments += r.Segments; r.Done {
			return segments
		}
		from = r.Next
	}
}

// steps are what happens to a long stream, one after the other.
var longSteps = []struct {
	name string
	do   func(*long)
}{
	{"find", func(l *long) { l.find(rand.New(rand.NewPCG(1, 2))) }},
	{"seal", func(l *long) { l.seal(100) }},
	{"evict", func(l *long) { l.must(l.s.Evict(context.Background(), l.rec.ID, l.rec.Sealed)) }},
	{"fork", func(l *long) { l.fork("fork") }},
	{"snapshot", func(l *long) { l.publish(l.rec.Tail / 4 * 3) }},
	{"trim a page", func(l *long) {
		_, err := l.s.Trim(context.Background(), l.rec.ID, 16)
		l.must(err)
	}},
	{"delete", func(l *long) { l.must(l.s.Delete(context.Background(), l.rec.ID)) }},
}

// Whatever happens to a stream costs the same memory, however many segments it has.
func TestMemoryDoesNotGrowWithSegments(t *testing.T) {
	allocated := func(segments int) map[string]uint64 {
		l := newLong(t, segments)
		defer func() { l.must(l.s.Close()) }()
		used := make(map[string]uint64)
		for _, step := range longSteps {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			step.do(l)
			runtime.ReadMemStats(&after)
			used[step.name] = after.TotalAlloc - before.TotalAlloc
		}
		return used
	}
	few, many := allocated(100), allocated(50_000)
	for name, n := range many {
		// Blocks of an index that is deeper are in the cache, which is bounded.
		if n > 2*few[name]+1<<20 {
			t.Errorf("%s: %d bytes with 50,000 segments, %d with 100", name, n, few[name])
		}
	}
}

// BenchmarkLongStream has a stream of a terabyte in a million segments.
//
//	go test ./tier/hot -run '^$' -bench LongStream -benchtime 1x
func BenchmarkLongStream(b *testing.B) {
	const segments = 1_000_000
	for range b.N {
		l := newLong(b, segments)
		took := func(name string, n int, fn func()) {
			begun := time.Now()
			fn()
			b.ReportMetric(float64(time.Since(begun).Microseconds())/float64(n), name+"-µs")
		}
		l.must(l.s.Close())
		took("open", 1, l.open)
		before := heap()
		r := rand.New(rand.NewPCG(1, 2))
		took("find", 1000, func() {
			for range 1000 {
				l.find(r)
			}
		})
		took("seal", 100, func() {
			for range 100 {
				l.seal(100)
			}
		})
		took("evict", 1, func() { l.must(l.s.Evict(context.Background(), l.rec.ID, l.rec.Sealed)) })
		var forks []stream.ID
		took("fork", 100, func() {
			for i := range 100 {
				forks = append(forks, l.fork(fmt.Sprint("fork", i)))
			}
		})
		for _, id := range forks {
			l.must(l.s.Delete(context.Background(), id))
		}
		took("snapshot", 1, func() { l.publish(segments / 2 * longSegment) })
		trimmed := 0
		took("trim-a-segment", segments/2, func() { trimmed = l.trim() })
		took("delete", 1, func() { l.must(l.s.Delete(context.Background(), l.rec.ID)) })
		took("let-go-of-a-segment", segments/2, func() { trimmed += l.trim() })
		b.ReportMetric(float64(heap()-min(heap(), before))/(1<<20), "heap-MiB")
		if trimmed != segments+100 {
			b.Errorf("%d segments were let go of, of %d", trimmed, segments+100)
		}
		l.must(l.s.Close())
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}
