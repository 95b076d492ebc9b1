package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/http/httptest"
	"strings"
	"testing"

	"firn/pkg/stream"
	"firn/tier"
)

// closer makes a blob of a reader.
type closer struct{ io.Reader }

func (closer) Close() error { return nil }

func snapshotOf(blob io.Reader, size int64) *tier.Snapshot {
	return &tier.Snapshot{SnapshotInfo: tier.SnapshotInfo{ContentType: "text/x-state; v=1", Size: size}, Body: closer{blob}}
}

func render(t *testing.T, boot *tier.Bootstrap) (string, error) {
	t.Helper()
	var out bytes.Buffer
	m := &multipartWriter{w: bufio.NewWriter(&out), boundary: "B"}
	if err := writeBootstrap(m, httptest.NewRequest("GET", "/", nil), boot); err != nil {
		m.w.Flush()
		return out.String(), err
	}
	err := m.close()
	return out.String(), err
}

func TestWriteBootstrap(t *testing.T) {
	tests := []struct {
		name string
		boot tier.Bootstrap
		want string
	}{
		{
			"nothing",
			tier.Bootstrap{Info: tier.Info{Mode: stream.JSON, ContentType: "application/json"}},
			"--B\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--B--\r\n",
		},
		{
			"messages",
			tier.Bootstrap{Info: tier.Info{Mode: stream.JSON, ContentType: "application/json"}, Updates: []byte("{\"a\":1}\n2\n")},
			"--B\r\nContent-Type: application/octet-stream\r\n\r\n\r\n--B\r\nContent-Type: application/json\r\n\r\n{\"a\":1}" +
				"\r\n--B\r\nContent-Type: application/json\r\n\r\n2\r\n--B--\r\n",
		},
		{
			"snapshot and bytes",
			tier.Bootstrap{
				Info:     tier.Info{Mode: stream.Bytes, ContentType: "text/plain"},
				Snapshot: snapshotOf(strings.NewReader("S\r\n"), 3),
				Updates:  []byte("a\nb\n"),
			},
			"--B\r\nContent-Type: text/x-state; v=1\r\n\r\nS\r\n\r\n--B\r\nContent-Type: text/plain\r\n\r\na\nb\n\r\n--B--\r\n",
		},
		{
			"snapshot alone",
			tier.Bootstrap{Info: tier.Info{Mode: stream.Bytes, ContentType: "text/plain"}, Snapshot: snapshotOf(strings.NewReader(""), 0)},
			"--B\r\nContent-Type: text/x-state; v=1\r\n\r\n\r\n--B--\r\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := render(t, &tt.boot)
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v\nwant %q", got, err, tt.want)
			}
			r := multipart.NewReader(strings.NewReader(got), "B")
			for parts := 0; ; parts++ {
				p, err := r.NextPart()
				if err == io.EOF && parts == strings.Count(tt.want, "Content-Type") {
					break
				}
				if err != nil {
					t.Fatalf("after %d parts: %v", parts, err)
				}
				if len(p.Header) != 1 {
					t.Errorf("part %d has headers %v", parts, p.Header)
				}
			}
		})
	}
}

var errDisk = errors.New("disk")

func TestBootstrapWithBrokenSnapshotIsNotClosed(t *testing.T) {
	blobs := map[string]*tier.Snapshot{
		"failing": snapshotOf(io.MultiReader(strings.NewReader("S"), failing{}), 5),
		"short":   snapshotOf(strings.NewReader("S"), 5),
	}
	for name, snap := range blobs {
		got, err := render(t, &tier.Bootstrap{Snapshot: snap, Updates: []byte("x")})
		if err == nil || strings.Contains(got, "--B--") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errDisk }

func TestNewBoundary(t *testing.T) {
	b, err := newBoundary(bytes.NewReader(bytes.Repeat([]byte{0xa5}, 16)))
	if err != nil || b != "firn-"+strings.Repeat("a5", 16) {
		t.Errorf("got %q, %v", b, err)
	}
	if _, err := newBoundary(bytes.NewReader(make([]byte, 15))); err == nil {
		t.Error("made a boundary of 120 bits")
	}
}
