package fs

import (
	"errors"
	"path/filepath"
	"strings"
)

// How a key becomes a path. Ordinary keys stay as they are, so that other tools
// find and read the files. For the rest the rules are:
//
//	bytes outside of safe      %XX
//	dot in a folder            %2E: names of folders never have a dot
//	first or last dot, file    %2E: never "..", hidden, or cut by other systems
//	file without any dot       "%" appended: names of files have a dot or end in "%"
//	empty segment, folder      "%_"
//	segment too long           pieces of pieceLen bytes, each but the last a folder
//	                           whose name ends in "%+"
//
// So a file and a folder never want the same name: keys "k" and "k/sub" coexist.
// Names of folders never have a dot, so those of the store itself, which begin
// with one, are never in the way.
const (
	safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=+@,~!$&'()"

	noDot     = "%"
	emptyName = "%_"
	continued = "%+"

	maxName  = 200 // encoded bytes; file systems allow 255
	pieceLen = 64  // raw bytes: at most 192 encoded
)

const upperHex = "0123456789ABCDEF"

// keyPath returns the path of a key's file, relative to the root.
func keyPath(key string) string {
	var parts []string
	segments := strings.Split(key, "/")
	for _, s := range segments[:len(segments)-1] {
		parts = append(parts, split(s, folderName)...)
	}
	parts = append(parts, split(segments[len(segments)-1], fileName)...)
	return filepath.Join(parts...)
}

// split returns the names for one segment, the last one made by name.
func split(segment string, name func(string) string) []string {
	if n := name(segment); len(n) <= maxName {
		return []string{n}
	}
	var parts []string
	for len(segment) > pieceLen {
		parts = append(parts, folderName(segment[:pieceLen])+continued)
		segment = segment[pieceLen:]
	}
	return append(parts, name(segment))
}

func folderName(segment string) string {
	if segment == "" {
		return emptyName
	}
	return escape(segment, func(int) bool { return true })
}

func fileName(segment string) string {
	last := len(segment) - 1
	n := escape(segment, func(i int) bool { return i == 0 || i == last })
	if !strings.Contains(n, ".") {
		n += noDot
	}
	return n
}

// escape replaces unsafe bytes, and the dots for which dot says so.
func escape(s string, dot func(i int) bool) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if strings.IndexByte(safe, c) < 0 || c == '.' && dot(i) {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

var errForeign = errors.New("name was not made by this store")

// parseName returns the part of a key that an entry of a folder stands for: the
// last segment for a file, a segment and its slash or a piece of a segment for a
// folder. Errors: errForeign.
func parseName(name string, isFolder bool) (string, error) {
	if !isFolder {
		s, err := unescape(strings.TrimSuffix(name, noDot))
		if err != nil || fileName(s) != name {
			return "", errForeign
		}
		return s, nil
	}
	if name == emptyName {
		return "/", nil
	}
	piece, ok := strings.CutSuffix(name, continued)
	s, err := unescape(piece)
	if err != nil || folderName(s) != piece {
		return "", errForeign
	}
	if ok {
		return s, nil
	}
	return s + "/", nil
}

func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errForeign
		}
		hi, lo := strings.IndexByte(upperHex, s[i+1]), strings.IndexByte(upperHex, s[i+2])
		if hi < 0 || lo < 0 {
			return "", errForeign
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), nil
}
