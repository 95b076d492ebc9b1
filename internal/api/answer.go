package api

import (
	"net/http"
	"strings"
	"time"
)

// pieceBytes is how much is sent under one write deadline.
const pieceBytes = 64 << 10

// answer is the response of one request. It remembers what was sent, and gives each
// write a deadline of its own: a response may take for ever, a stalled client may not.
type answer struct {
	http.ResponseWriter
	ctl     *http.ResponseController
	request *http.Request
	coder   *coder // nil sends everything as it is
	stall   time.Duration

	route     string
	status    int
	sent      int64
	received  int64
	committed bool // the header is on its way
	live      bool // its duration says nothing about the server
	control   bool // errors have the form of the control APIs
	takenOver bool // the rest comes from elsewhere
	// disarm: a deadline that passes between two writes would end the response. So it
	// is on HTTP/2; on HTTP/1 only a write that is under way can miss it.
	disarm bool
}

func newAnswer(w http.ResponseWriter, r *http.Request, stall time.Duration) *answer {
	a := &answer{
		ResponseWriter: w,
		request:        r,
		ctl:            http.NewResponseController(w),
		stall:          stall,
		disarm:         r.ProtoMajor >= 2,
		route:          "none",
	}
	if expectsContinue(r) {
		// The interim response is written by the server itself, under whatever
		// deadline the previous response left on the connection.
		a.ctl.SetWriteDeadline(time.Time{})
	}
	return a
}

// expectsContinue reports whether the client holds its body back until it is asked
// for (RFC 9110 §10.1.1). Reading the body asks.
func expectsContinue(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// WriteHeader sends the status.
func (a *answer) WriteHeader(status int) {
	if !a.committed {
		a.status, a.committed = status, true
	}
	a.arm()
	a.ResponseWriter.WriteHeader(status)
	a.rest()
}

// Write sends p piece by piece.
func (a *answer) Write(p []byte) (int, error) {
	if !a.committed {
		a.status, a.committed = http.StatusOK, true
	}
	total := 0
	for {
		piece := p[total:min(len(p), total+pieceBytes)]
		a.arm()
		n, err := a.ResponseWriter.Write(piece)
		total += n
		a.sent += int64(n)
		if err != nil || total == len(p) {
			a.rest()
			return total, err
		}
	}
}

// Flush sends what is buffered.
func (a *answer) Flush() error {
	a.arm()
	err := a.ctl.Flush()
	a.rest()
	return err
}

// Unwrap lets an [http.ResponseController] find the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// finish bounds the last flush, which the server does when the handler has returned.
func (a *answer) finish() {
	if a.disarm {
		a.arm()
	}
}

// Not every writer has deadlines (a test's recorder has none); nothing depends on them.
func (a *answer) arm() { a.ctl.SetWriteDeadline(time.Now().Add(a.stall)) }

func (a *answer) rest() {
	if a.disarm {
		a.ctl.SetWriteDeadline(time.Time{})
	}
}
