package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/verify"
	"firn/pkg/stream"
)

// Dir is where the store lives on its disk.
const Dir = "data/hot"

// contents is a store as it is on disk.
type contents struct {
	*verify.Catalog
	data map[stream.ID]*bytes.Buffer // the payloads of the data values, joined
}

// Check checks the store in a directory, which nobody has open, against itself.
func Check(fs vfs.FS, dir string) error {
	_, err := inspect(fs, dir)
	return err
}

// inspect reads a store that nobody has open, and checks it against itself.
func inspect(fs vfs.FS, dir string) (*contents, error) {
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, ReadOnly: true, Logger: silent{}, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	defer db.Close()
	c := &contents{data: make(map[stream.ID]*bytes.Buffer)}
	c.Catalog, err = verify.Load(db, verify.Options{Value: func(id stream.ID, _ uint64, payload []byte) error {
		if c.data[id] == nil {
			c.data[id] = new(bytes.Buffer)
		}
		c.data[id].Write(payload)
		return nil
	}})
	if err != nil {
		return nil, err
	}
	var problems []error
	for _, p := range c.Check() {
		problems = append(problems, errors.New(p.String()))
	}
	return c, errors.Join(problems...)
}

type silent struct{}

func (silent) Infof(string, ...any)              {}
func (silent) Errorf(string, ...any)             {}
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// equal compares the model with a store; nil if they are the same.
func (m *model) equal(c *contents) error {
	if c.State.Life != m.life {
		return fmt.Errorf("last life is %d, want %d", c.State.Life, m.life)
	}
	created := make(map[string]uint64)
	for name, b := range c.Buckets {
		created[name] = b.Created
	}
	if !maps.Equal(created, m.buckets) {
		return fmt.Errorf("buckets are %v, want %v", created, m.buckets)
	}
	for key, o := range m.objects {
		if is, want := c.Objects[key], (verify.Object{State: byte(o.state), Live: o.live, Size: o.size, Due: o.due, Content: o.content, Keep: o.keep}); is != want {
			return fmt.Errorf("object %s is %+v, want %+v", key, is, want)
		}
	}
	if len(c.Objects) != len(m.objects) {
		return fmt.Errorf("store knows %d objects, want %d", len(c.Objects), len(m.objects))
	}
	alive := 0
	for n, e := range m.streams {
		if !e.gone {
			alive++
		}
		if err := m.equalStream(n, e, c); err != nil {
			return fmt.Errorf("stream %d (%s, %s): %w", n, e.name, e.id, err)
		}
	}
	if len(c.Streams) != alive {
		return fmt.Errorf("store has %d streams, want %d", len(c.Streams), alive)
	}
	return nil
}

func (m *model) equalStream(n int, e *entity, c *contents) error {
	if refs := c.Segments[e.id]; len(refs)+len(e.segments) > 0 && !reflect.DeepEqual(refs, e.segments) {
		return fmt.Errorf("has %d segments or other ones, want %d", len(refs), len(e.segments))
	}
	if c.Merge[e.id] != e.merge {
		return fmt.Errorf("is in the index of streams to merge: %t", !e.merge)
	}
	is := c.Streams[e.id]
	if e.gone {
		if is != nil {
			return errors.New("should be gone")
		}
		return nil
	}
	if is == nil {
		return errors.New("has no record")
	}
	// What the catalog is checked against itself for is taken over.
	want := m.record(n, e)
	want.Segments, want.UnsealedSince, want.Ready = is.Segments, is.UnsealedSince, is.Ready
	if !reflect.DeepEqual(is, want) {
		return fmt.Errorf("record is %s, want %s", show(is), show(want))
	}
	if p := c.Producers[e.id]; len(p)+len(e.producers) > 0 && !maps.Equal(p, e.producers) {
		return fmt.Errorf("producers are %v, want %v", p, e.producers)
	}
	return e.equalData(c)
}

// record is what the catalog should have of a stream.
func (m *model) record(n int, e *entity) *verify.Stream {
	s := &verify.Stream{
		Name: e.name, Life: e.life, ContentType: e.contentType, Mode: stream.Bytes,
		CreatedAt: e.created, LastWrite: e.written, Lifetime: e.lifetime, Asked: e.asked, Deadline: e.deadline,
		Closed: e.closed, Closer: e.closer, Deleted: e.deleted, Seq: e.seq, Producers: uint64(len(e.producers)),
		Base: e.base, Floor: e.floor, Cut: e.cut, Sealed: e.sealed, Tail: e.tail(),
		Earliest: e.earliest, Need: m.need(n), Forks: uint64(len(m.forks(n))),
	}
	if e.json {
		s.Mode = stream.JSON
	}
	if f := e.fork; f != nil {
		s.Fork = &verify.Fork{Source: m.streams[f.source].id, From: f.from, Anchor: f.anchor, SubOffset: f.subOffset}
	}
	if p := e.snapshot; p != nil {
		s.Snapshot = &verify.Snapshot{Position: p.Position, Object: p.Object, Size: uint64(p.Size), ContentType: p.ContentType, CRC: uint64(p.CRC)}
	}
	return s
}

// equalData compares the hot bytes, those of the first value below the cut too.
func (e *entity) equalData(c *contents) error {
	values := c.Values[e.id]
	if len(values) == 0 {
		return nil // then cut is tail, or the check has said so
	}
	from := values[0].From
	if data := c.data[e.id].Bytes(); !bytes.Equal(data, e.content[from:]) {
		return fmt.Errorf("hot bytes from %d on differ from what was appended", from)
	}
	return nil
}

// show prints a record with what its pointers point to.
func show(s *verify.Stream) string {
	deref := func(v any) any {
		if p := reflect.ValueOf(v); !p.IsNil() {
			return p.Elem().Interface()
		}
		return nil
	}
	return fmt.Sprintf("{%+v closer:%v seq:%v fork:%v snapshot:%v}", *s, deref(s.Closer), deref(s.Seq), deref(s.Fork), deref(s.Snapshot))
}
