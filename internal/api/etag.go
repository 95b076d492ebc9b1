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

// matches reports whether If-None-Match names the tag (RFC 9110 §13.1.2). The
// comparison is weak, as the field demands.
func matches(r *http.Request, tag string) bool {
	for _, line := range r.Header["If-None-Match"] {
		for line != "" {
			line = strings.TrimLeft(line, " \t,")
			if strings.HasPrefix(line, "*") {
				return true
			}
			line = strings.TrimPrefix(line, "W/")
			if !strings.HasPrefix(line, `"`) {
				break
			}
			end := strings.IndexByte(line[1:], '"')
			if end < 0 {
				break
			}
			if line[:end+2] == tag {
				return true
			}
			line = line[end+2:]
		}
	}
	return false
}
