package api

import (
	"net/http"
	"strings"
)

// weight is how much a client wants a coding, in thousandths; 0 refuses it.
type weight int16

// asLast is the weight of identity where nothing is said of it: it may be sent, but
// what was asked for comes first (RFC 9110 §12.5.3).
const asLast weight = 1

// accepted is what an Accept-Encoding says.
type accepted struct {
	weights [codings]weight
	// zstd was named. Of those who say * and mean whatever they know, few know zstd.
	zstd bool
}

// acceptedBy reads the field of a request. Without one every coding may be sent, which
// is no reason to send any but identity. Elements that cannot be read say nothing.
func acceptedBy(r *http.Request) accepted {
	lines := r.Header[headerAcceptEncoding]
	if lines == nil {
		return accepted{weights: [codings]weight{identity: 1000, gzipCoding: asLast, zstdCoding: asLast}}
	}
	const unsaid weight = -1
	said := [codings]weight{unsaid, unsaid, unsaid}
	star := unsaid
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			name, parameter, weighted := strings.Cut(element, ";")
			w, ok := weight(1000), true
			if weighted {
				w, ok = parseWeight(parameter)
			}
			if at := codingNamed(strings.TrimSpace(name), &said, &star); ok && at != nil && *at == unsaid {
				*at = w
			}
		}
	}
	out := accepted{weights: said, zstd: said[zstdCoding] > 0}
	for c, w := range said {
		switch {
		case w != unsaid:
		case star != unsaid:
			out.weights[c] = star
		case coding(c) == identity:
			out.weights[c] = asLast
		default:
			out.weights[c] = 0
		}
	}
	return out
}

// codingNamed is where the weight of a name goes, nil for names that mean nothing here.
func codingNamed(name string, said *[codings]weight, star *weight) *weight {
	switch strings.ToLower(name) {
	case "identity":
		return &said[identity]
	case "gzip", "x-gzip": // RFC 9110 §8.4.1.3
		return &said[gzipCoding]
	case "zstd":
		return &said[zstdCoding]
	case "*":
		return star
	}
	return nil
}

// parseWeight reads "q=" and a number from 0 to 1 with up to three decimals
// (RFC 9110 §12.4.2).
func parseWeight(s string) (weight, bool) {
	name, value, _ := strings.Cut(strings.TrimSpace(s), "=")
	whole, decimals, _ := strings.Cut(value, ".")
	if name != "q" && name != "Q" || whole != "0" && whole != "1" || len(decimals) > 3 {
		return 0, false
	}
	n, ok := parseInteger(whole+decimals+"000"[len(decimals):], 1000)
	return weight(n), ok
}

// best is the coding to send where any is worth while: of those wanted most zstd,
// which is faster and smaller, then gzip.
func (a accepted) best() coding {
	best := identity
	if w := a.weights[gzipCoding]; w > 0 && w >= a.weights[identity] {
		best = gzipCoding
	}
	if w := a.weights[zstdCoding]; w > a.weights[best] || w > 0 && w == a.weights[best] && (a.zstd || best == identity) {
		best = zstdCoding
	}
	return best
}
