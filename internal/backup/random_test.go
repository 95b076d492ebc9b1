package backup_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"firn/internal/backup"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
)

// truth is what a random run knows: all bytes that each incarnation had, what the
// streams were at each copy, and offsets that were given out.
type truth struct {
	full   map[stream.ID]string
	copies []moment
	given  []given
}

// moment is what the store was at a copy.
type moment struct {
	at      time.Time
	unsure  bool // whether it is in the bucket
	streams map[stream.Name]known
}

// known is a stream at a moment.
type known struct {
	id             stream.ID
	earliest, tail uint64
	sealed         uint64
	closed         bool
	snapshot       string
}

// given is an offset with all bytes before it.
type given struct {
	name   stream.Name
	offset stream.Offset
	before string
}

// TestRandomLoss loses the disk at random moments of random work. What is rebuilt
// holds at least the newest copy and every byte that was sealed, nothing else than what
// was written, and no offset that was given out ever names other bytes.
func TestRandomLoss(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t)
			w := &worker{rig: r, rand: rand.New(rand.NewPCG(seed, 7)), truth: truth{full: make(map[stream.ID]string)}}
			for range 150 {
				w.step()
				if t.Failed() {
					t.Logf("steps: %s", strings.Join(w.log, " "))
					return
				}
			}
		})
	}
}

type worker struct {
	*rig
	rand *rand.Rand
	truth
	log   []string
	words int
}

func (w *worker) name() stream.Name { return named(fmt.Sprintf("s%d", w.rand.IntN(6))) }

// word is unlike every other.
func (w *worker) word() string {
	w.words++
	return strings.Repeat(fmt.Sprintf("%d.", w.words), 1+w.rand.IntN(60))
}

func (w *worker) step() {
	w.wait(time.Duration(1+w.rand.IntN(3000)) * time.Millisecond)
	n := w.name()
	switch k := w.rand.IntN(100); {
	case k < 15:
		w.note("create", n)
		word := w.word()
		if i, created, err := w.store.Create(bg, tier.CreateRequest{Name: n, ContentType: "text/plain", Body: []byte(word)}); err == nil && created {
			w.full[i.ID] = word
		}
	case k < 22:
		w.fork(n)
	case k < 55:
		w.note("append", n)
		word := w.word()
		i, err := w.store.Head(bg, n)
		if err != nil {
			break
		}
		req := tier.AppendRequest{Name: n, ContentType: "text/plain", Body: []byte(word), Close: w.rand.IntN(12) == 0}
		if w.rand.IntN(2) == 0 {
			req.Producer = &stream.Producer{ID: word}
		}
		res, err := w.store.Append(bg, req)
		if err == nil {
			w.full[i.ID] += word
			w.given = append(w.given, given{n, res.Tail, w.full[i.ID]})
		}
	case k < 60:
		w.note("delete", n)
		_ = w.store.Delete(bg, n)
	case k < 66:
		w.snapshot(n)
	case k < 76:
		w.note("seal", n)
		if i, err := w.store.Head(bg, n); err == nil {
			w.must(w.compactor.SealStream(bg, i.ID))
			if w.rand.IntN(2) == 0 {
				w.must(w.compactor.EvictStream(bg, i.ID))
			}
		}
	case k < 82:
		w.note("pass")
		_, err := w.compactor.Pass(bg)
		w.must(err)
	case k < 92:
		w.copied()
	case k < 93:
		w.note("grace")
		w.wait(grace)
	case k < 95:
		w.note("restart")
		w.stop()
		w.start()
	default:
		w.lost()
	}
}

func (w *worker) note(what string, n ...stream.Name) {
	w.log = append(w.log, strings.TrimSuffix(fmt.Sprint(what, n), "[]"))
}

func (w *worker) fork(n stream.Name) {
	src := w.name()
	w.note("fork", n, src)
	i, err := w.store.Head(bg, src)
	if err != nil {
		return
	}
	at := i.Earliest
	at.Position += w.rand.Uint64N(i.Tail.Position - i.Earliest.Position + 1)
	f, created, err := w.store.Create(bg, tier.CreateRequest{Name: n, Fork: &tier.ForkRequest{Source: src, Offset: &at}})
	if err == nil && created {
		w.full[f.ID] = w.full[i.ID][:at.Position]
	}
}

func (w *worker) snapshot(n stream.Name) {
	w.note("snapshot", n)
	i, err := w.store.Head(bg, n)
	if err != nil {
		return
	}
	at := i.Earliest
	at.Position += w.rand.Uint64N(i.Tail.Position - i.Earliest.Position + 1)
	w.must(w.store.PublishSnapshot(bg, tier.PublishRequest{
		Name: n, Offset: at, ContentType: "text/plain", Size: -1, Body: strings.NewReader(fmt.Sprintf("%s at %d", i.ID, at.Position)),
	}))
}

// copied makes a copy, which may fail.
func (w *worker) copied() {
	if w.rand.IntN(5) == 0 && w.hot.Changed() {
		w.note("copy-fails")
		w.blobs.Script(fault.Fault{Op: fault.Put, Key: "/catalog/", Kind: fault.Kind(1 + w.rand.IntN(2))})
		was := moment{at: w.now(), unsure: true, streams: w.look()}
		if _, err := w.runner.Copy(bg); err != nil {
			w.copies = append(w.copies, was)
		}
		if w.rand.IntN(2) == 0 {
			return
		}
		w.wait(time.Millisecond)
	}
	w.note("copy")
	was := w.now()
	_, err := w.runner.Copy(bg)
	w.must(err)
	w.copies = append(w.copies, moment{at: was, streams: w.look()})
}

// look reads what every stream is.
func (w *worker) look() map[stream.Name]known {
	w.t.Helper()
	v := w.hot.View()
	defer v.Close()
	all := make(map[stream.Name]known)
	for i := range 6 {
		n := named(fmt.Sprintf("s%d", i))
		info, err := w.store.Head(bg, n)
		if err != nil {
			continue
		}
		rec, err := v.Stream(n)
		w.must(err)
		k := known{id: info.ID, earliest: info.Earliest.Position, tail: info.Tail.Position, sealed: rec.Sealed, closed: info.Closed}
		if info.Snapshot != nil {
			k.snapshot = fmt.Sprintf("%d %s", info.Snapshot.Offset.Position, info.Snapshot.Tag)
			s, err := w.store.OpenSnapshot(bg, n, info.Snapshot.Offset)
			if err != nil {
				w.t.Errorf("snapshot of %s: %v", n, err)
				continue
			}
			s.Body.Close()
		}
		all[n] = k
		if got, err := w.content(n); err != nil || got != w.full[info.ID][k.earliest:k.tail] {
			w.t.Errorf("%s holds %q (%v), want %q from %d to %d", n, got, err, w.full[info.ID], k.earliest, k.tail)
		}
	}
	return all
}

// lost takes the disk away, rebuilds, and holds what comes out to what is known.
func (w *worker) lost() {
	w.t.Helper()
	end := w.look()
	var until time.Time
	last := -1
	for i, c := range w.copies {
		if !c.unsure {
			last = i
		}
	}
	if last >= 0 && w.rand.IntN(3) == 0 {
		// Any copy within the grace will do.
		for last > 0 && !w.copies[last-1].unsure && w.now().Sub(w.copies[last-1].at) < grace && w.rand.IntN(3) > 0 {
			last--
		}
		until = w.copies[last].at
	}
	w.note(fmt.Sprintf("lose(until %d of %d)", last+1, len(w.copies)))
	if last < 0 {
		return
	}
	w.lose()
	rep, rebuilt := w.rig.rebuild(backup.RebuildOptions{Until: until})
	if rep.MissingCount > 0 || len(rep.Skipped) > 0 {
		w.t.Fatalf("report: %+v", rep)
	}
	was := w.copies[last].streams
	for _, c := range w.copies[last:] {
		if c.at.Equal(rep.Copy) {
			was = c.streams // its reply was lost
		}
	}
	for _, s := range rebuilt {
		w.full[s.ID] = w.full[s.ID][:min(s.Tail, uint64(len(w.full[s.ID])))]
	}
	is := w.look()
	for n, k := range was {
		got, there := is[n]
		switch {
		case !there:
			w.t.Errorf("%s is not there", n)
		case got.id != k.id && (!until.IsZero() || w.full[got.id] == ""):
			w.t.Errorf("%s is %s, was %s", n, got.id, k.id)
		case got.id != k.id:
		case got.tail < k.tail, !until.IsZero() && got.tail != k.tail:
			w.t.Errorf("%s ends at %d, at %d in the copy", n, got.tail, k.tail)
		case got.earliest != k.earliest || got.closed != k.closed || got.snapshot != k.snapshot:
			w.t.Errorf("%s is %+v, in the copy it is %+v", n, got, k)
		case until.IsZero() && end[n].id == k.id && end[n].earliest == k.earliest && got.tail < end[n].sealed:
			w.t.Errorf("%s ends at %d, it was sealed up to %d", n, got.tail, end[n].sealed)
		}
	}
	for n, k := range is {
		// One that was made and deleted after the copy may be back.
		if _, copied := was[n]; !copied && (!until.IsZero() || w.full[k.id] == "") {
			w.t.Errorf("%s is there, out of nowhere", n)
		}
	}
	if until.IsZero() {
		for _, l := range rep.Lost {
			w.log = append(w.log, fmt.Sprintf("%+v", l))
		}
	}
	w.offsets()
	// Copies of before name a store that has gone another way since.
	w.copies = []moment{{at: w.now(), streams: is}}
	w.wait(time.Second)
	_, err := w.runner.Copy(bg)
	w.must(err)
	w.copies[0].at = w.now()
	w.must(w.prefix())
}

// prefix holds the names of the rebuilt streams to be those that a listing shows.
func (w *worker) prefix() error {
	l, err := w.store.List(bg, tier.ListRequest{Bucket: stream.DefaultBucket, Limit: 100})
	if err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(toIDs(w.look())))
	var listed []string
	for _, s := range l.Streams {
		listed = append(listed, s.Name.ID)
	}
	if !slices.Equal(names, listed) {
		return fmt.Errorf("listed are %v, there are %v", listed, names)
	}
	return nil
}

func toIDs(m map[stream.Name]known) map[string]bool {
	ids := make(map[string]bool)
	for n := range m {
		ids[n.ID] = true
	}
	return ids
}

// offsets holds every offset that was ever given out to the bytes before it.
func (w *worker) offsets() {
	w.t.Helper()
	for _, g := range w.given {
		info, err := w.store.Head(bg, g.name)
		if err != nil {
			continue
		}
		p, err := w.store.Read(bg, g.name, stream.At(g.offset))
		if err != nil {
			if !errors.Is(err, stream.ErrOffsetOtherLife) && !errors.As(err, new(*stream.TrimmedError)) {
				w.t.Errorf("%s at %s: %v", g.name, g.offset, err)
			}
			continue
		}
		if full := w.full[info.ID]; uint64(len(full)) < g.offset.Position || full[:g.offset.Position] != g.before {
			w.t.Errorf("%s at %s: there are other bytes before it now", g.name, g.offset)
		}
		p.Release()
	}
}
