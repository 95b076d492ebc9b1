package faultproxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Always is for Rule.Times: fire at every request.
const Always = -1

// Rule says for which requests an action is.
type Rule struct {
	Method string // "" for all
	Path   string // substring of path and query; "" for all
	Skip   int    // requests that pass before it fires
	Times  int    // how often it fires; 0 means once, [Always] without end
	Every  int    // fires at each so manieth request; 0 and 1 mean each
	Do     Action
}

func (r Rule) fits(method, path string) bool {
	return (r.Method == "" || r.Method == method) && strings.Contains(path, r.Path)
}

// Action takes a request over.
type Action func(*Exchange)

// Fail answers with an error of the store, without asking it. Pairs are header fields.
func Fail(status int, code string, pairs ...string) Action {
	return func(x *Exchange) {
		_, _ = io.Copy(io.Discard, x.Request.Body) // as a store does that wants to keep the connection
		h := x.Writer.Header()
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		h.Set("Content-Type", "application/xml")
		x.Writer.WriteHeader(status)
		if x.Request.Method != http.MethodHead {
			fmt.Fprintf(x.Writer, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>scripted</Message></Error>`, code)
		}
	}
}

// Hide says that there is no such object.
func Hide() Action { return Fail(http.StatusNotFound, "NoSuchKey") }

// Slow waits before the request is passed on.
func Slow(d time.Duration) Action {
	return func(x *Exchange) {
		x.Wait(d)
		x.Pass()
	}
}

// SlowAnswer lets the store do the request and holds the answer back, also when the
// client leaves meanwhile.
func SlowAnswer(d time.Duration) Action {
	return func(x *Exchange) {
		res := x.Forward(context.WithoutCancel(x.Request.Context()))
		defer res.Body.Close()
		x.Wait(d)
		x.Header(res)
		_, _ = io.Copy(x.Writer, res.Body)
	}
}

// Hang takes the request and never answers.
func Hang() Action {
	return func(x *Exchange) {
		_, _ = io.Copy(io.Discard, x.Request.Body) // the client's leaving shows only when it is read
		x.Wait(time.Hour)
		x.Abort()
	}
}

// Drop breaks the connection off without doing anything.
func Drop() Action { return (*Exchange).Abort }

// LoseReply lets the store do the request and breaks the connection off in place of
// an answer.
func LoseReply() Action {
	return func(x *Exchange) {
		res := x.Forward(context.WithoutCancel(x.Request.Context()))
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		x.Abort()
	}
}

// HangBody answers, gives n bytes of the body, and stops.
func HangBody(n int64) Action {
	return body(func(x *Exchange, res *http.Response) {
		x.Header(res)
		_, _ = io.CopyN(x.Writer, res.Body, n)
		x.flush()
		x.Wait(time.Hour)
		x.Abort()
	})
}

// Drip answers and gives one byte of the body at a time.
func Drip(every time.Duration) Action {
	return body(func(x *Exchange, res *http.Response) {
		x.Header(res)
		for {
			if _, err := io.CopyN(x.Writer, res.Body, 1); err != nil || x.Request.Context().Err() != nil {
				return
			}
			x.flush()
			x.Wait(every)
		}
	})
}

// Cut breaks the body of an answer off after n bytes; the length says more.
func Cut(n int64) Action {
	return body(func(x *Exchange, res *http.Response) {
		x.Header(res)
		_, _ = io.CopyN(x.Writer, res.Body, n)
		x.flush()
		x.Abort()
	})
}

// Short ends the body of an answer cleanly after n bytes; the length fits.
func Short(n int64) Action {
	return body(func(x *Exchange, res *http.Response) {
		res.Header.Set("Content-Length", strconv.FormatInt(min(n, res.ContentLength), 10))
		x.Header(res)
		_, _ = io.CopyN(x.Writer, res.Body, n)
	})
}

// Flip inverts a bit in the middle of the body of an answer.
func Flip() Action {
	return body(func(x *Exchange, res *http.Response) {
		b, err := io.ReadAll(res.Body)
		if err != nil {
			x.Abort()
		}
		if len(b) > 0 {
			b[len(b)/2] ^= 1
		}
		x.Header(res)
		_, _ = x.Writer.Write(b)
	})
}

// Answer changes the header of an answer. Pairs are header fields.
func Answer(status int, pairs ...string) Action {
	return body(func(x *Exchange, res *http.Response) {
		if status != 0 {
			res.StatusCode = status
		}
		for i := 0; i < len(pairs); i += 2 {
			res.Header.Set(pairs[i], pairs[i+1])
		}
		x.Header(res)
		_, _ = io.Copy(x.Writer, res.Body)
	})
}

// Ignore passes a request on without a field of its header, as a store does that does
// not know it.
func Ignore(fields ...string) Action {
	return func(x *Exchange) {
		for _, f := range fields {
			x.Request.Header.Del(f)
		}
		x.proxy.sign(x.Request)
		x.Pass()
	}
}

// body acts on answers that have succeeded; others pass.
func body(do func(x *Exchange, res *http.Response)) Action {
	return func(x *Exchange) {
		res := x.Forward(x.Request.Context())
		defer res.Body.Close()
		if res.StatusCode >= 300 {
			x.Header(res)
			_, _ = io.Copy(x.Writer, res.Body)
			return
		}
		do(x, res)
	}
}

func (x *Exchange) flush() { _ = http.NewResponseController(x.Writer).Flush() }
