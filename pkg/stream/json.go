package stream

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"
)

// MaxJSONDepth bounds how deep arrays and objects may nest within one message.
const MaxJSONDepth = 512

// JSONError refuses a body that is not exactly one JSON text (B§9.1). Offset is
// the position in the body, in bytes, at which it stops being one.
type JSONError struct {
	Offset int
	Reason string
}

func (e *JSONError) Error() string {
	return fmt.Sprintf("body is not valid JSON at byte %d: %s", e.Offset, e.Reason)
}

// EncodeJSON appends the messages of body to dst in their stored form and
// returns how many there are. A body that is an array is flattened exactly one
// level: each element is a message; any other value is one message (B§9.1.2).
// A message is stored as its own text without insignificant white space,
// followed by one LF; number spelling, key order, duplicate keys and escapes
// stay as sent. The stored form takes at most len(body)+1 bytes, and nothing is
// allocated when dst has room for that many. dst and body must not overlap.
//
// The body must be one RFC 8259 text in valid UTF-8 without a byte order mark,
// nested no deeper than [MaxJSONDepth] within a message; lone surrogates written
// as escapes are legal. Errors: [ErrEmptyBody], [ErrEmptyArray], [*JSONError].
// With an error dst is returned as it came.
func EncodeJSON(dst, body []byte) (stored []byte, messages int, err error) {
	if len(body) == 0 {
		return dst, 0, ErrEmptyBody
	}
	e := jsonEncoder{in: body, out: slices.Grow(dst, len(body)+1)}
	messages, err = e.document()
	if err != nil {
		return dst, 0, err
	}
	return e.out, messages, nil
}

// AppendJSONArray appends stored messages to dst as one JSON array (B§9.1.4).
// ndjson ends at a message boundary; without messages the array is empty.
func AppendJSONArray(dst, ndjson []byte) []byte {
	if len(ndjson) == 0 {
		return append(dst, "[]"...)
	}
	start := len(dst)
	dst = append(dst, 0)
	dst = append(dst, ndjson...)
	MakeJSONArray(dst[start:])
	return dst
}

// MakeJSONArray turns stored messages into one JSON array in place. b is one byte of
// any value and then the messages, one at least, each ended by LF.
func MakeJSONArray(b []byte) {
	b[0] = '['
	// Compact text holds no LF, so each is the end of a message.
	for rest := b[1:]; len(rest) > 0; {
		i := bytes.IndexByte(rest, '\n')
		rest[i] = ','
		rest = rest[i+1:]
	}
	b[len(b)-1] = ']'
}

// Messages yields each stored message without its LF. ndjson ends at a message
// boundary. The messages alias ndjson.
func Messages(ndjson []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for rest := ndjson; len(rest) > 0; {
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			if !yield(rest[:end:end]) {
				return
			}
			rest = rest[min(end+1, len(rest)):]
		}
	}
}

// jsonEncoder validates in place and copies late: in[from:pos] has been checked
// but not yet copied. Only white space and the end of a message end such a run,
// so that compact text is copied in one piece.
type jsonEncoder struct {
	in, out   []byte
	from, pos int
}

// document reads the whole body and returns its number of messages.
func (e *jsonEncoder) document() (messages int, err error) {
	e.skipSpace()
	if e.peek() == '[' {
		messages, err = e.elements()
	} else {
		messages, err = 1, e.message()
	}
	if err != nil {
		return 0, err
	}
	e.skipSpace()
	if e.pos < len(e.in) {
		return 0, e.fail("text after the end of the document")
	}
	if messages == 0 {
		return 0, ErrEmptyArray
	}
	return messages, nil
}

// elements reads the outermost array, each of whose elements is a message.
func (e *jsonEncoder) elements() (messages int, err error) {
	e.pos++
	e.skipSpace()
	if e.peek() == ']' {
		e.pos++
		return 0, nil
	}
	for {
		if err := e.message(); err != nil {
			return 0, err
		}
		messages++
		e.skipSpace()
		switch e.peek() {
		case ',':
			e.pos++
			e.skipSpace()
		case ']':
			e.pos++
			return messages, nil
		default:
			return 0, e.fail("expected ',' or ']' after an array element")
		}
	}
}

// message reads one value and appends it with its LF. It does not recurse: the
// open arrays and objects are bits of a fixed size, so that no body can make the
// stack grow.
func (e *jsonEncoder) message() error {
	e.from = e.pos
	var open nesting
	for {
		if err := e.startValue(&open); err != nil {
			return err
		}
		more, err := e.endValue(&open)
		if err != nil {
			return err
		}
		if !more {
			e.out = append(e.out, e.in[e.from:e.pos]...)
			e.out = append(e.out, '\n')
			return nil
		}
	}
}

// startValue reads opening brackets and keys up to and including a scalar or an
// empty array or object.
func (e *jsonEncoder) startValue(open *nesting) error {
	for {
		switch c := e.peek(); c {
		case '"':
			return e.text()
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			return e.number()
		case 't':
			return e.literal("true")
		case 'f':
			return e.literal("false")
		case 'n':
			return e.literal("null")
		case '[', '{':
			if open.depth == MaxJSONDepth {
				return e.fail("nesting is too deep")
			}
			e.pos++
			e.dropSpace()
			if e.peek() == c+2 { // in ASCII '[' and ']', '{' and '}' are two apart
				e.pos++
				return nil
			}
			open.push(c == '{')
			if c == '{' {
				if err := e.key(); err != nil {
					return err
				}
			}
		default:
			return e.fail("expected a value")
		}
	}
}

// endValue reads what follows a value: closing brackets, and a comma (with the
// next key) if more is to come in this message.
func (e *jsonEncoder) endValue(open *nesting) (more bool, err error) {
	for open.depth > 0 {
		e.dropSpace()
		object := open.object()
		switch c := e.peek(); {
		case c == ',':
			e.pos++
			e.dropSpace()
			if object {
				return true, e.key()
			}
			return true, nil
		case c == '}' && object, c == ']' && !object:
			e.pos++
			open.depth--
		case object:
			return false, e.fail("expected ',' or '}' after an object member")
		default:
			return false, e.fail("expected ',' or ']' after an array element")
		}
	}
	return false, nil
}

// key reads a member's name and its colon.
func (e *jsonEncoder) key() error {
	if e.peek() != '"' {
		return e.fail("expected a member name in double quotes")
	}
	if err := e.text(); err != nil {
		return err
	}
	e.dropSpace()
	if e.peek() != ':' {
		return e.fail("expected ':' after a member name")
	}
	e.pos++
	e.dropSpace()
	return nil
}

// text reads a string from its opening to its closing quote.
func (e *jsonEncoder) text() error {
	in, i := e.in, e.pos+1
	for {
		for i < len(in) && jsonPlain[in[i]] {
			i++
		}
		e.pos = i
		if i == len(in) {
			return e.failEnd()
		}
		switch c := in[i]; {
		case c == '"':
			e.pos++
			return nil
		case c == '\\':
			if err := e.escape(); err != nil {
				return err
			}
		case c < ' ':
			return e.fail("control character in a string")
		default:
			r, size := utf8.DecodeRune(in[i:])
			if r == utf8.RuneError && size == 1 {
				return e.fail("string is not valid UTF-8")
			}
			e.pos += size
		}
		i = e.pos
	}
}

// escape reads a backslash and what it escapes.
func (e *jsonEncoder) escape() error {
	rest := e.in[e.pos+1:]
	if len(rest) == 0 {
		return e.failEnd()
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		e.pos += 2
		return nil
	case 'u':
		if len(rest) < 5 || !hexDigit[rest[1]] || !hexDigit[rest[2]] || !hexDigit[rest[3]] || !hexDigit[rest[4]] {
			return e.fail("\\u must be followed by four hexadecimal digits")
		}
		e.pos += 6
		return nil
	}
	return e.fail("unknown escape in a string")
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?
func (e *jsonEncoder) number() error {
	if e.peek() == '-' {
		e.pos++
	}
	if e.peek() == '0' {
		e.pos++
		if isDigit(e.peek()) {
			return e.fail("number has a leading zero")
		}
	} else if !e.digits() {
		return e.fail("expected a digit")
	}
	if e.peek() == '.' {
		e.pos++
		if !e.digits() {
			return e.fail("expected a digit after the decimal point")
		}
	}
	if c := e.peek(); c == 'e' || c == 'E' {
		e.pos++
		if c := e.peek(); c == '+' || c == '-' {
			e.pos++
		}
		if !e.digits() {
			return e.fail("expected a digit in the exponent")
		}
	}
	return nil
}

// digits reads as many digits as there are and reports whether there was one.
func (e *jsonEncoder) digits() bool {
	start := e.pos
	for e.pos < len(e.in) && isDigit(e.in[e.pos]) {
		e.pos++
	}
	return e.pos > start
}

func (e *jsonEncoder) literal(word string) error {
	if len(e.in)-e.pos < len(word) || string(e.in[e.pos:e.pos+len(word)]) != word {
		return e.fail("expected a value")
	}
	e.pos += len(word)
	return nil
}

// skipSpace passes over white space between messages.
func (e *jsonEncoder) skipSpace() {
	for e.pos < len(e.in) && jsonSpace[e.in[e.pos]] {
		e.pos++
	}
}

// dropSpace passes over white space within a message; if there is any it ends
// the run, which is copied.
func (e *jsonEncoder) dropSpace() {
	if e.pos == len(e.in) || !jsonSpace[e.in[e.pos]] {
		return
	}
	e.out = append(e.out, e.in[e.from:e.pos]...)
	e.skipSpace()
	e.from = e.pos
}

// peek returns the next byte, or NUL at the end: no JSON token begins with NUL.
func (e *jsonEncoder) peek() byte {
	if e.pos < len(e.in) {
		return e.in[e.pos]
	}
	return 0
}

func (e *jsonEncoder) fail(reason string) error {
	if e.pos >= len(e.in) {
		return e.failEnd()
	}
	return &JSONError{Offset: e.pos, Reason: reason}
}

func (e *jsonEncoder) failEnd() error {
	return &JSONError{Offset: len(e.in), Reason: "unexpected end of the body"}
}

// nesting is the stack of open arrays (0) and objects (1), one bit each.
type nesting struct {
	depth int
	bits  [MaxJSONDepth / 64]uint64
}

func (n *nesting) push(object bool) {
	word, bit := n.depth/64, uint64(1)<<(n.depth%64)
	n.bits[word] &^= bit
	if object {
		n.bits[word] |= bit
	}
	n.depth++
}

// object reports whether the innermost open bracket is an object's.
func (n *nesting) object() bool {
	d := n.depth - 1
	return n.bits[d/64]>>(d%64)&1 != 0
}

func isDigit(c byte) bool { return c-'0' < 10 }

var (
	// jsonPlain: bytes that stand for themselves within a string.
	jsonPlain = tableOf(func(c byte) bool { return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' })
	// jsonSpace: insignificant white space.
	jsonSpace = tableOf(func(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' })
	hexDigit  = tableOf(func(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' })
)

func tableOf(has func(byte) bool) (t [256]bool) {
	for c := range t {
		t[c] = has(byte(c))
	}
	return t
}
