package api

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"

	"firn/pkg/stream"
)

// TestProtocolDocumentHasEveryCode compares the table of docs/protocol.md with the
// errors that are answered.
func TestProtocolDocumentHasEveryCode(t *testing.T) {
	want := map[string]bool{fmt.Sprintf("| %d | `internal` |", http.StatusInternalServerError): true}
	add := func(p problem) { want[fmt.Sprintf("| %d | `%s` |", p.Status, p.Code)] = true }
	for _, r := range rules {
		add(newProblem(r.status, r.code, ""))
	}
	for _, err := range []error{
		&stream.ClosedError{}, &stream.TrimmedError{}, &stream.StaleEpochError{}, &stream.SeqGapError{}, &stream.JSONError{},
	} {
		p, ok := typedProblem(err)
		if !ok {
			t.Fatalf("%T is not answered", err)
		}
		add(p)
	}
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| \\d{3} \\| `[a-z_]+` \\|$").FindAllString(string(text), -1) {
		got[row] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/protocol.md has\n%q\nthe server answers\n%q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}
