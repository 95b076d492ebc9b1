package api

import (
	"slices"
	"strings"
)

// compressibility is what a content type says about its bytes.
type compressibility uint8

const (
	unknown compressibility = iota
	compressed
	compressible
)

// compressibilityOf goes by the type's name and by its suffix (RFC 6838 §4.2.8).
func compressibilityOf(contentType string) compressibility {
	t, _, _ := strings.Cut(contentType, ";")
	kind, name, _ := strings.Cut(strings.ToLower(strings.TrimSpace(t)), "/")
	switch suffix := name[strings.LastIndexByte(name, '+')+1:]; {
	case kind == "text", slices.Contains(textual, suffix), slices.Contains(textual, strings.TrimPrefix(name, "x-")):
		return compressible
	case kind == "image", kind == "audio", kind == "video", kind == "font",
		slices.Contains(packed, suffix), slices.Contains(packed, strings.TrimPrefix(name, "x-")):
		return compressed
	}
	return unknown
}

// Names and suffixes of types.
var (
	textual = []string{"json", "xml", "yaml", "javascript", "ndjson", "jsonl", "json-seq", "sql", "graphql"}
	packed  = []string{"gzip", "zip", "zstd", "brotli", "bzip", "bzip2", "xz", "lzma", "7z-compressed", "rar-compressed", "vnd.rar", "java-archive", "pdf"}
)
