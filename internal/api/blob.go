package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"firn/tier"
)

// sendBlob answers with a snapshot as it comes. It is compressed only if its type says
// that it can be: how much smaller it gets is known too late to do without, and its
// length, which a client may want to know, is lost in any case.
func (s *Server) sendBlob(a *answer, r *http.Request, snap *tier.Snapshot) error {
	c, must := a.negotiate(snap.Size)
	if c == identity || !must && a.compressibility() != compressible {
		return sendPlainBlob(a, r, snap)
	}
	if r.Method == http.MethodHead {
		a.coded(c)
		a.WriteHeader(http.StatusOK)
		return nil
	}
	// The encoder is kept for as long as the client takes, so nobody waits for one.
	e := a.coder.streamed.take(false)
	if e == nil {
		s.metrics.codingBusy.Inc()
		return sendPlainBlob(a, r, snap)
	}
	defer a.coder.streamed.put(e)
	a.coded(c)
	a.WriteHeader(http.StatusOK)
	w := e.writer(a, c)
	defer e.forget(c)
	whole, err := copyBlob(w, r, snap)
	if err != nil {
		return err
	}
	if !whole || w.Close() != nil {
		return context.Canceled // the client left: without a length only breaking off tells
	}
	s.metrics.coded(c, snap.Size, a.sent)
	return nil
}

func sendPlainBlob(a *answer, r *http.Request, snap *tier.Snapshot) error {
	a.Header().Set(headerContentLength, strconv.FormatInt(snap.Size, 10))
	a.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := copyBlob(a, r, snap)
	return err
}

// copyBlob sends a blob. A failure of the blob is an error, a client that leaves is not;
// whole tells.
func copyBlob(w io.Writer, r *http.Request, snap *tier.Snapshot) (whole bool, err error) {
	in := &blobReader{Reader: snap.Body}
	n, err := io.Copy(w, in)
	switch {
	case in.err != nil:
		return false, fmt.Errorf("read snapshot at %s: %w", snap.Offset, in.err)
	case err != nil || r.Context().Err() != nil:
		return false, nil
	case n != snap.Size:
		return false, fmt.Errorf("read snapshot at %s: got %d bytes of %d", snap.Offset, n, snap.Size)
	}
	return true, nil
}

// blobReader tells failures to read from failures to write.
type blobReader struct {
	io.Reader
	err error
}

func (b *blobReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != io.EOF {
		b.err = err
	}
	return n, err
}
