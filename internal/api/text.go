package api

import (
	"bytes"
	"unicode/utf8"
)

// textCut decides where the text of one event ends. Pages end at any byte, events must
// not: neither within a character nor within a CRLF, of which a reader that came back
// in between would see two line ends. What may be the beginning of either waits for the
// next page.
type textCut struct {
	held []byte // at most three bytes
}

// next returns what may be delivered of a page, and how many bytes of the page's end
// are held back. With last nothing is held back: no more will come. The result aliases
// data or is a copy.
func (t *textCut) next(data []byte, last bool) (deliver []byte, held int) {
	if len(t.held) > 0 {
		data = append(t.held, data...)
		t.held = nil
	}
	if !last {
		held = incomplete(data)
	}
	deliver, rest := data[:len(data)-held], data[len(data)-held:]
	t.held = bytes.Clone(rest)
	return deliver, held
}

// incomplete returns how many bytes at the end begin a character or a CRLF without
// ending it. Bytes that no continuation can turn into a character do not count.
func incomplete(b []byte) int {
	if bytes.HasSuffix(b, []byte{'\r'}) {
		return 1
	}
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
