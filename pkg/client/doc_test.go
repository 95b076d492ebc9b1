package client_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The code of the guide is that of the examples, which run.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 5 {
		t.Errorf("the guide has %d pieces of code", len(blocks))
	}
	for _, b := range blocks {
		if !strings.Contains(string(examples), "\n"+b[1]) {
			t.Errorf("no example has\n%s", b[1])
		}
	}
}
