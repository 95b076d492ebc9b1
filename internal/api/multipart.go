package api

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
)

// multipartWriter writes a multipart/mixed entity (RFC 2046 §5.1): no preamble, no epilogue,
// parts with a Content-Type and nothing else. The first error is kept by the writer and
// returned by close.
type multipartWriter struct {
	w        *bufio.Writer
	boundary string
	open     bool // a part was begun
}

// newBoundary draws 128 bits: data that was stored before cannot contain it.
func newBoundary(random io.Reader) (string, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("draw multipart boundary: %w", err)
	}
	return "firn-" + hex.EncodeToString(b[:]), nil
}

// part begins the next part; its body is what is written to w until the next call.
func (m *multipartWriter) part(contentType string) {
	m.delimiter()
	m.w.WriteString("\r\nContent-Type: ")
	m.w.WriteString(contentType)
	m.w.WriteString("\r\n\r\n")
}

// close ends the last part and the entity. Without it no parser takes the entity for
// whole.
func (m *multipartWriter) close() error {
	m.delimiter()
	m.w.WriteString("--\r\n")
	return m.w.Flush()
}

// delimiter begins with the line end that belongs to it, not to the part before.
func (m *multipartWriter) delimiter() {
	if m.open {
		m.w.WriteString("\r\n")
	}
	m.open = true
	m.w.WriteString("--")
	m.w.WriteString(m.boundary)
}
