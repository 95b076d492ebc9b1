package api

import (
	"net/http"
	"strconv"
	"strings"

	"firn/tier"
)

// pageTag identifies a page: the incarnation and its life, the range, and whether it reaches the
// tail and the stream's end. A cache that is told 304 keeps the headers it has, so
// what they say is part of the tag. Never the tier: moving bytes does not change
// them (B§5.6, B§10.1).
func pageTag(p *tier.Page) string {
	b := make([]byte, 0, 64)
	b = append(b, '"')
	b = append(b, p.Info.ID.String()...)
	b = append(b, ':')
	// A stream that lost bytes and was rebuilt may have others at the same positions.
	b = strconv.AppendUint(b, p.From.Life, 16)
	b = append(b, ':')
	b = strconv.AppendUint(b, p.From.Position, 10)
	b = append(b, ':')
	b = strconv.AppendUint(b, p.Next.Position, 10)
	if p.UpToDate {
		b = append(b, ":u"...)
	}
	if p.Closed {
		b = append(b, ":c"...)
	}
	return string(append(b, '"'))
}

// snapshotTag identifies a blob together with what its headers say about the stream.
func snapshotTag(s *tier.Snapshot) string {
	tag := s.Tag
	if s.UpToDate {
		tag += ":u"
	}
	if s.Closed {
		tag += ":c"
	}
	return strconv.Quote(tag)
}

// codedTag is the tag of the same answer in another coding: other bytes, so another
// strong tag (RFC 9110 §8.8.3.3).
func codedTag(tag string, c coding) string {
	return tag[:len(tag)-1] + "-" + c.String() + `"`
}

// heldTag returns the tag of If-None-Match that stands for what the tag stands for, in
// any coding that the request accepts; "" when there is none (RFC 9110 §13.1.2). In
// a 304 it tells a cache which of its copies is good. One in a coding that is not accepted
// is no use: a cache asks with the tags of all its copies, and would hand that one out.
// The comparison is weak, as the field demands.
func heldTag(r *http.Request, tag string) string {
	for _, line := range r.Header["If-None-Match"] {
		for line != "" {
			line = strings.TrimLeft(line, " \t,")
			if strings.HasPrefix(line, "*") {
				return tag
			}
			line = strings.TrimPrefix(line, "W/")
			if !strings.HasPrefix(line, `"`) {
				break
			}
			end := strings.IndexByte(line[1:], '"')
			if end < 0 {
				break
			}
			if held := line[:end+2]; usable(r, held, tag) {
				return held
			}
			line = line[end+2:]
		}
	}
	return ""
}

func usable(r *http.Request, held, tag string) bool {
	if !strings.HasPrefix(held, tag[:len(tag)-1]) {
		return false
	}
	for c := range codings {
		if (c == identity && held == tag) || (c != identity && held == codedTag(tag, c)) {
			return acceptedBy(r).weights[c] > 0
		}
	}
	return false
}
