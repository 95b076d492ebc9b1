package main

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/config"
)

// documented is the tables of docs/metrics.md: "type {labels}" by name.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	metrics := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(firn_\\w+)` \\| (\\w+) \\| (.*?) ?\\| .+ \\|$").FindAllStringSubmatch(string(text), -1) {
		if _, twice := metrics[row[1]]; twice {
			t.Errorf("%s is documented twice", row[1])
		}
		labels := strings.Split(strings.NewReplacer("`", "", " ", "").Replace(row[3]), ",")
		slices.Sort(labels)
		metrics[row[1]] = row[2] + " {" + strings.Join(labels, ",") + "}"
	}
	return metrics
}

func TestMetricsAreDocumented(t *testing.T) {
	c := config.Default()
	c.DataDir = t.TempDir()
	c.Cold.URL = config.ColdURL{Kind: config.ColdFile, Path: t.TempDir()} // outside of it, copies are made
	p, err := build(t.Context(), c.Resolved(), descriptors{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		p.metrics.Describe(descriptions)
		close(descriptions)
	}()
	docs := documented(t)
	// A description has no accessors.
	form := regexp.MustCompile(`fqName: "(\w+)", .*variableLabels: {(.*?)}`)
	for d := range descriptions {
		m := form.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("unknown form: %s", d)
		}
		name, labels := m[1], strings.Split(m[2], ",")
		if !strings.HasPrefix(name, "firn_") {
			continue // those of Go and of the process
		}
		slices.Sort(labels)
		_, docLabels, found := strings.Cut(docs[name], " ")
		if got := "{" + strings.Join(labels, ",") + "}"; !found {
			t.Errorf("%s is not in docs/metrics.md", name)
		} else if docLabels != got {
			t.Errorf("%s has the labels %s, docs/metrics.md says %s", name, got, docLabels)
		}
		delete(docs, name)
	}
	for name := range docs {
		t.Errorf("docs/metrics.md has %s, which there is not", name)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
}
