package config

import "strings"

// didYouMean returns "; did you mean X?" for the known name nearest to an unknown
// one, or nothing if none is near.
func didYouMean(unknown string, known []string) string {
	if n := nearest(unknown, known); n != "" {
		return "; did you mean " + n + "?"
	}
	return ""
}

// nearest returns the known name that was most likely meant: one that is two edits
// away, else one of the same key in another section or of the same beginning, else
// one that differs in at most a third.
func nearest(unknown string, known []string) string {
	unknown = strings.ToLower(unknown)
	best, least := "", len(unknown)+1
	for _, k := range known {
		if d := editDistance(unknown, strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if least <= 2 {
		return best
	}
	leaf := unknown[strings.LastIndexByte(unknown, '.')+1:]
	for _, k := range known {
		if strings.HasSuffix(k, "."+leaf) || strings.HasPrefix(k, unknown) {
			return k
		}
	}
	if least <= len(unknown)/3 {
		return best
	}
	return ""
}

// editDistance counts the insertions, deletions and replacements of bytes that
// lead from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
