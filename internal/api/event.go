package api

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"firn/pkg/stream"
)

// encoding is how a stream's bytes travel in data events (B§5.8). Clients depend on
// the exact spelling: "event: " with a space, "data:" without one, lines ended by LF.
type encoding uint8

const (
	asBase64 encoding = iota
	asText
	asJSON
)

func encodingOf(contentType string, mode stream.Mode) encoding {
	switch {
	case mode == stream.JSON:
		return asJSON
	case stream.IsText(contentType):
		return asText
	}
	return asBase64
}

// control says where a data event ends. Each data event is followed by one.
type control struct {
	offset   stream.Offset
	cursor   int64
	upToDate bool
	closed   bool
}

// appendEvent appends a data event, unless there is no data, and its control event. The
// two belong in one write: some clients read up to the first control event they see.
func appendEvent(dst, data []byte, as encoding, c control) []byte {
	if len(data) > 0 {
		dst = append(dst, "event: data\n"...)
		switch as {
		case asText:
			dst = appendLines(dst, data)
		case asJSON:
			// Stored messages hold no line ends: the array is one line.
			dst = append(dst, "data:"...)
			dst = stream.AppendJSONArray(dst, data)
			dst = append(dst, '\n')
		default:
			dst = append(dst, "data:"...)
			dst = base64.StdEncoding.AppendEncode(dst, data)
			dst = append(dst, '\n')
		}
		dst = append(dst, '\n')
	}
	return appendControl(dst, c)
}

// appendControl appends a control event, flat and on one line.
func appendControl(dst []byte, c control) []byte {
	dst = append(dst, "event: control\ndata:{\"streamNextOffset\":\""...)
	dst = append(dst, c.offset.String()...)
	dst = append(dst, '"')
	if !c.closed { // nobody comes back to a closed stream
		dst = append(dst, `,"streamCursor":"`...)
		dst = strconv.AppendInt(dst, c.cursor, 10)
		dst = append(dst, '"')
	}
	if c.upToDate || c.closed {
		dst = append(dst, `,"upToDate":true`...)
	}
	if c.closed {
		dst = append(dst, `,"streamClosed":true`...)
	}
	return append(dst, "}\n\n"...)
}

// appendLines splits text at CRLF, CR and LF, as every parser of events does, so that
// no text can end the event or begin another. A parser drops one leading space of a
// line; a line that has one gets another for it.
func appendLines(dst, text []byte) []byte {
	for {
		dst = append(dst, "data:"...)
		if len(text) > 0 && text[0] == ' ' {
			dst = append(dst, ' ')
		}
		i := bytes.IndexAny(text, "\r\n")
		if i < 0 {
			dst = append(dst, text...)
			return append(dst, '\n')
		}
		dst = append(dst, text[:i]...)
		dst = append(dst, '\n')
		if text[i] == '\r' && i+1 < len(text) && text[i+1] == '\n' {
			i++
		}
		text = text[i+1:]
	}
}
