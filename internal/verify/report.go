package verify

import (
	"encoding/json"
	"fmt"

	"firn/pkg/stream"
)

// Code says what kind of a problem one is. Codes are stable.
type Code string

const (
	// CodeCatalog: the hot tier disagrees with itself.
	CodeCatalog Code = "catalog"
	// CodeHot: hot bytes are not what their stream's mode allows.
	CodeHot Code = "hot_bytes"
	// CodeMissing: the catalog names an object that the store does not have.
	CodeMissing Code = "object_missing"
	// CodeDamaged: an object has another size, or fails its own checksums.
	CodeDamaged Code = "object_damaged"
	// CodeDiffers: an object is whole but is not the one that the catalog means, or
	// does not have the bytes that the hot tier has.
	CodeDiffers Code = "object_differs"
)

// maxListed bounds the problems and the keys that a Report lists; the rest is counted.
const maxListed = 10_000

// Problem is a place where the store disagrees with itself.
type Problem struct {
	Code Code
	// Stream is the incarnation concerned, 0 if none is; Name is its name, if it has one.
	Stream stream.ID
	Name   string
	// Object is the key of the object concerned, if one is.
	Object string
	Text   string
}

// String names what is concerned, and says what is wrong.
func (p Problem) String() string {
	text := p.Text
	if p.Object != "" {
		text = fmt.Sprintf("object %q: %s", p.Object, text)
	}
	switch {
	case p.Name != "":
		return fmt.Sprintf("stream %s (%s): %s", p.Name, p.Stream, text)
	case p.Stream != 0:
		return fmt.Sprintf("stream %s: %s", p.Stream, text)
	}
	return text
}

type problemJSON struct {
	Code   Code   `json:"code"`
	Stream string `json:"incarnation,omitempty"`
	Name   string `json:"stream,omitempty"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// MarshalJSON writes the incarnation as it is written everywhere.
func (p Problem) MarshalJSON() ([]byte, error) {
	j := problemJSON{Code: p.Code, Name: p.Name, Object: p.Object, Text: p.Text}
	if p.Stream != 0 {
		j.Stream = p.Stream.String()
	}
	return json.Marshal(j)
}

// UnmarshalJSON is the inverse.
func (p *Problem) UnmarshalJSON(b []byte) error {
	var j problemJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*p = Problem{Code: j.Code, Name: j.Name, Object: j.Object, Text: j.Text}
	if j.Stream == "" {
		return nil
	}
	id, err := stream.ParseID(j.Stream)
	p.Stream = id
	return err
}

// Report is what a run found.
type Report struct {
	Store string `json:"store"`
	// What there is, and was looked at. Bytes are stored bytes.
	Streams   int    `json:"streams"`
	Segments  int    `json:"segments"`
	Snapshots int    `json:"snapshots"`
	HotBytes  uint64 `json:"hot_bytes"`
	// Objects are those that the catalog names, ObjectBytes their size, ReadBytes
	// what was read of them.
	Objects     int    `json:"objects"`
	ObjectBytes uint64 `json:"object_bytes"`
	ReadBytes   uint64 `json:"read_bytes"`

	// Found counts problems, Problems lists the first ones.
	Found    int       `json:"found"`
	Problems []Problem `json:"problems"`
	// Unknown counts objects that the catalog does not know, UnknownKeys lists the
	// first ones. Nobody reads them, and firn never removes them.
	Unknown     int      `json:"unknown"`
	UnknownKeys []string `json:"unknown_keys,omitempty"`
	// Unchecked counts objects about which the store gave no answer.
	Unchecked int `json:"unchecked"`
}

// Clean reports whether everything was looked at and nothing is wrong.
func (r *Report) Clean() bool { return r.Found == 0 && r.Unchecked == 0 }

func (r *Report) add(c *Catalog, p Problem) {
	if s := c.Streams[p.Stream]; s != nil {
		p.Name = s.Name.String()
	}
	if r.Found++; len(r.Problems) < maxListed {
		r.Problems = append(r.Problems, p)
	}
}

func (r *Report) unknown(key string) {
	if r.Unknown++; len(r.UnknownKeys) < maxListed {
		r.UnknownKeys = append(r.UnknownKeys, key)
	}
}

// Progress is how far a run is.
type Progress struct {
	// Objects of Total have been looked at, Read bytes of Bytes are read.
	Objects int    `json:"objects"`
	Total   int    `json:"total"`
	Read    uint64 `json:"read"`
	Bytes   uint64 `json:"bytes"`
	Found   int    `json:"found"`
}
