package segment_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"firn/pkg/segment"
)

// zstdCommand runs the stock tool on an object in a file.
func zstdCommand(t *testing.T, object []byte, args ...string) []byte {
	t.Helper()
	bin, err := exec.LookPath("zstd")
	if err != nil {
		t.Fatal("this test needs the zstd command: apt-get install zstd, or brew install zstd")
	}
	path := filepath.Join(t.TempDir(), "object.zst")
	if err := os.WriteFile(path, object, 0o644); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(bin, append(args, path)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("zstd %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// The promise to people without firn: the stock tool reads every object.
func TestStockTool(t *testing.T) {
	const frame = segment.DefaultFrameBytes
	e := newEncoder(t, segment.Options{})
	packObject, _, packContents := pack(t)
	for _, tc := range []struct {
		name   string
		object []byte
		data   []byte
	}{
		{"one byte", seal(t, e, bytesMeta, []byte("x"), 1).Bytes, []byte("x")},
		{"one message", seal(t, e, jsonMeta, []byte("1\n"), 1).Bytes, []byte("1\n")},
		{"a frame and a byte", seal(t, e, bytesMeta, noise(frame+1), 1000).Bytes, noise(frame + 1)},
		{"a long message", seal(t, e, jsonMeta, ndjson(2, 12<<20), 1<<20).Bytes, ndjson(2, 12<<20)},
		{"a segment of events", seal(t, e, jsonMeta, events(8<<20), 1<<20).Bytes, events(8 << 20)},
		{"a pack", packObject, bytes.Join(packContents, nil)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := zstdCommand(t, tc.object, "-dc"); !bytes.Equal(got, tc.data) {
				t.Errorf("zstd -dc gives %d bytes, want the %d written", len(got), len(tc.data))
			}
			zstdCommand(t, tc.object, "-t")
			d, err := segment.ParseTail(tc.object, int64(len(tc.object)))
			if err != nil {
				t.Fatal(err)
			}
			// Descriptor and seek table are frames to the tool.
			list := string(zstdCommand(t, tc.object, "--list", "-v"))
			for _, want := range []string{
				fmt.Sprintf("# Zstandard Frames: %d\n", len(d.Frames)),
				"# Skippable Frames: 2\n",
				fmt.Sprintf("(%d B)\n", len(tc.object)),
				fmt.Sprintf("(%d B)\n", len(tc.data)),
			} {
				if !strings.Contains(list, want) {
					t.Errorf("zstd --list lacks %q:\n%s", want, list)
				}
			}
		})
	}
}
