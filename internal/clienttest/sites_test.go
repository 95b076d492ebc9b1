package clienttest_test

import (
	"errors"
	"net/url"
	"testing"
	"time"

	"firn/internal/api"
	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

// base are the tests that need no more than the base protocol. Every site runs them,
// but for those that it lists as unable.
var base = []struct {
	name string
	// hasty: servers wait only for moments at the tail, and rotate their event streams.
	hasty bool
	test  func(*testing.T, *world)
}{
	{"create", false, testCreate},
	{"create again after a lost answer", false, testCreateLost},
	{"fork", false, testFork},
	{"append errors", false, testAppendErrors},
	{"error codes", false, testErrorCodes},
	{"read", false, testRead},
	{"follow", true, testFollow},
	{"follow in peace", false, testFollowInPeace},
	{"follow from now", false, testFollowNow},
	{"follow over crashes", false, testFollowCrash},
	{"follow a stream that is deleted", false, testFollowDeleted},
	{"follow until there is no more", true, testFollowEnds},
	{"follow events that are cut", true, testFollowCut},
	{"follow lines that are cut", true, testFollowLines},
	{"follow a server that is busy", true, testFollowBusy},
	{"producer", false, testProducerOnce},
	{"producer over crashes", false, testProducerCrash},
	{"producer of many goroutines", false, testProducerConcurrent},
	{"producer of many small appends", false, testProducerSmall},
	{"producer fencing", false, testProducerFencing},
	{"producer errors", false, testProducerErrors},
	{"producer without answers", false, testProducerUnanswered},
	{"producer of odd sizes", false, testProducerSizes},
	{"producer that closes", false, testProducerEnd},
	{"producer of a server that is busy", false, testProducerBusy},
	{"giving up", true, testGivingUp},
}

// site is a kind of server.
type site struct {
	streams string // the path of its streams
	// codes: its errors have those of docs/protocol.md.
	codes bool
	// unable names tests that it cannot pass, and why.
	unable map[string]string
	// step is the distance of the bytes after which answers are cut.
	step  int
	start func(t *testing.T, hasty bool) host
}

// host is a running server.
type host interface {
	// URL is its root, which never changes.
	URL() string
	// Crash ends it without warning and starts it again, with its data. It calls
	// between while there is none.
	Crash(between func()) error
}

// run runs the tests of a site.
func (s site) run(t *testing.T) {
	left := len(s.unable)
	for _, b := range base {
		if s.unable[b.name] != "" {
			left--
			continue
		}
		t.Run(b.name, func(t *testing.T) { b.test(t, &world{s.start(t, b.hasty), s}) })
	}
	if left != 0 {
		t.Errorf("it is unable to pass %d tests that do not exist", left)
	}
}

// hurry are the options of servers that wait only for moments.
var hurry = api.Options{SSEMaxAge: 40 * time.Millisecond, SSEHeartbeat: 5 * time.Millisecond, LongPollTimeout: 20 * time.Millisecond}

// firn is a server in this process, whose data are hot, or as soon as they are
// acknowledged cold.
func firn(cold bool) site {
	return site{streams: "/ds/demo/", codes: true, step: 17, start: func(t *testing.T, hasty bool) host {
		o := clienttest.Options{Cold: cold}
		if hasty {
			o.API = hurry
		}
		h := clienttest.Serve(t, o)
		makeBucket(t, h)
		return h
	}}
}

func TestHot(t *testing.T)  { firn(false).run(t) }
func TestCold(t *testing.T) { firn(true).run(t) }

func makeBucket(t *testing.T, h host) {
	t.Helper()
	c, err := client.New(h.URL(), client.Options{HTTP: clienttest.NewHTTP(t)})
	if err == nil {
		err = c.CreateBucket(t.Context(), "demo")
	}
	if err != nil && !errors.Is(err, stream.ErrBucketExists) {
		t.Fatal(err)
	}
}

// world is a server and its streams.
type world struct {
	host
	site site
}

// at is a stream of the server, or of what stands before it under another root. When
// the test ends, no goroutine of package client may be left.
func (w *world) at(t *testing.T, root, id string, o client.Options) *client.Stream {
	t.Helper()
	if o.HTTP == nil {
		o.HTTP = clienttest.NewHTTP(t)
	}
	if o.Retry == (client.Retry{}) {
		o.Retry = impatient
	}
	s, err := client.NewStream(root+w.site.streams+url.PathEscape(id), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { alone(t) })
	return s
}

// stream is a stream of the server.
func (w *world) stream(t *testing.T, id string) *client.Stream {
	t.Helper()
	return w.at(t, w.URL(), id, client.Options{})
}

// create makes a stream.
func (w *world) create(t *testing.T, id, contentType, data string) *client.Stream {
	t.Helper()
	s := w.stream(t, id)
	if _, err := s.Create(t.Context(), client.CreateOptions{ContentType: contentType, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// refused fails the test unless err says what a server of the base protocol says by its
// status, and one with codes, with its meaning.
func (w *world) refused(t *testing.T, what string, err error, status int, meaning error) {
	t.Helper()
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Status != status || w.site.codes && !errors.Is(err, meaning) {
		t.Errorf("%s: %v, want %d", what, err, status)
	}
}
