package api

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestProtocolDocumentHasEveryControlCode compares the table of docs/protocol.md with
// the errors that only the control APIs have.
func TestProtocolDocumentHasEveryControlCode(t *testing.T) {
	want := map[string]bool{fmt.Sprintf("| %d | `%s` |", http.StatusConflict, codeHeld): true}
	for _, r := range controlRules {
		want[fmt.Sprintf("| %d | `%s` |", r.status, r.code)] = true
	}
	text, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| \\d{3} \\| `[A-Z_]+` \\|").FindAllString(string(text), -1) {
		got[row] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/protocol.md has\n%q\nthe server answers\n%q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}
