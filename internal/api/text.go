package api

import (
	"bytes"
	"unicode/utf8"
)

// textCut decides where the text of one event ends. Pages end at any byte, events must
// not split a character: bytes of one that is not complete wait for the next page.
// Nor does a line end that two pages share count twice.
type textCut struct {
	held []byte // the beginning of a character, at most three bytes
	cr   bool   // the last byte delivered was CR
}

// next returns what may be delivered of a page, and how many bytes of the page's end
// are held back. With last nothing is held back: no more will come. The result aliases
// data or is a copy.
func (t *textCut) next(data []byte, last bool) (deliver []byte, held int) {
	if len(t.held) > 0 {
		data = append(t.held, data...)
		t.held = nil
	}
	if len(data) == 0 {
		return nil, 0
	}
	if t.cr && data[0] == '\n' {
		data = data[1:] // the other half of a CRLF, delivered as one line end
	}
	t.cr = false
	if !last {
		held = incomplete(data)
	}
	deliver, rest := data[:len(data)-held], data[len(data)-held:]
	t.held = bytes.Clone(rest)
	if len(deliver) > 0 {
		t.cr = deliver[len(deliver)-1] == '\r'
	}
	return deliver, held
}

// incomplete returns how many bytes at the end begin a character without ending it.
// Bytes that no continuation can turn into a character do not count.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
