package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"
)

func TestBestCoding(t *testing.T) {
	tests := []struct {
		field    string // lines
		want     coding
		identity bool // is acceptable
	}{
		{"-", identity, true},
		{"", identity, true},
		{"gzip", gzipCoding, true},
		{"x-gzip", gzipCoding, true},
		{"GZip", gzipCoding, true},
		{"zstd", zstdCoding, true},
		{"gzip, deflate, br, zstd", zstdCoding, true},
		{"gzip, deflate, br", gzipCoding, true},
		{"deflate, br", identity, true},
		{"gzip;q=1.0, zstd;q=0.5", gzipCoding, true},
		{"gzip ; Q=0.5 , zstd;q=0.501", zstdCoding, true},
		{"gzip;q=0.001", gzipCoding, true},
		{"gzip;q=0", identity, true},
		{"gzip;q=0.000", identity, true},
		{"gzip;q=0.5, identity;q=0.6", identity, true},
		{"gzip;q=0.5, identity;q=0.5", gzipCoding, true},
		{"identity, gzip;q=0.9", identity, true},
		{"*", gzipCoding, true},
		{"*;q=0.5, zstd;q=0.4", gzipCoding, true},
		{"*, zstd", zstdCoding, true},
		{"*, gzip;q=0", zstdCoding, true},
		{"*;q=0.5, identity", identity, true},
		{"*;q=0", identity, false},
		{"gzip, *;q=0", gzipCoding, false},
		{"identity;q=0.1, *;q=0", identity, true},
		{"identity;q=0", identity, false},
		{"identity;q=0, gzip;q=0.1", gzipCoding, false},
		{"identity;q=0, br", identity, false},
		{"identity;q=0, *", gzipCoding, false},
		{"zstd;q=0, gzip\nzstd", gzipCoding, true}, // what is said first counts
		{"gzip;q=0.1\nzstd;q=0.2", zstdCoding, true},
		{"gzip;q=2", identity, true},
		{"gzip;q=1.001", identity, true},
		{"gzip;q=0.0001", identity, true},
		{"gzip;q=-1", identity, true},
		{"gzip;q=.5", identity, true},
		{"gzip;q=1e0", identity, true},
		{"gzip;q", identity, true},
		{"gzip;level=9", identity, true},
		{"gzip;q=", identity, true},
		{"gzip;q=1.", gzipCoding, true},
		{"gzip, gzip;q=0, ,;q=1,", gzipCoding, true},
		{"gzip zstd", identity, true},
	}
	for _, tt := range tests {
		r := &http.Request{Header: http.Header{}}
		for line := range strings.SplitSeq(tt.field, "\n") {
			if line != "-" {
				r.Header.Add("Accept-Encoding", line)
			}
		}
		a := acceptedBy(r)
		if got := a.best(); got != tt.want || (a.weights[identity] > 0) != tt.identity {
			t.Errorf("%q: got %q, identity %d; want %q, %v", tt.field, got, a.weights[identity], tt.want, tt.identity)
		}
	}
}

func TestCompressibility(t *testing.T) {
	for contentType, want := range map[string]compressibility{
		"text/plain":                          compressible,
		"Text/CSV; charset=utf-8":             compressible,
		"application/json":                    compressible,
		"application/JSON ; v=1":              compressible,
		"application/vnd.api+json":            compressible,
		"application/x-ndjson":                compressible,
		"application/problem+json":            compressible,
		"image/svg+xml":                       compressible,
		"image/png":                           compressed,
		"video/mp4":                           compressed,
		"font/woff2":                          compressed,
		"application/gzip":                    compressed,
		"application/x-gzip":                  compressed,
		"application/zip":                     compressed,
		"application/epub+zip":                compressed,
		"application/vnd.geo+gzip":            compressed,
		"application/zstd":                    compressed,
		"application/octet-stream":            unknown,
		"application/x-protobuf":              unknown,
		"application/jsonish":                 unknown,
		"":                                    unknown,
		"application/octet-stream; x=\"zip\"": unknown,
	} {
		if got := compressibilityOf(contentType); got != want {
			t.Errorf("%q: got %d, want %d", contentType, got, want)
		}
	}
}

// decode undoes a coding.
func decode(c coding, b []byte) (string, error) {
	var r io.Reader
	switch c {
	case gzipCoding:
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return "", err
		}
		r = z
	case zstdCoding:
		z, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderMaxWindow(8<<20)) // as browsers
		if err != nil {
			return "", err
		}
		defer z.Close()
		r = z
	}
	out, err := io.ReadAll(r)
	return string(out), err
}

// A strong tag stands for bytes, so they must not depend on what was encoded before.
func TestEncoderIsDeterministic(t *testing.T) {
	used := new(encoder)
	for _, c := range []coding{gzipCoding, zstdCoding} {
		for _, n := range []int{1, 1 << 10, 5 << 20} {
			text := strings.Repeat("line of text number "+c.String()+"\n", n/20+1)[:n]
			got := used.encode([]byte("before"), []byte(text), c)
			used.encode(nil, []byte(strings.Repeat("something else ", n/10+1)), c)
			if !bytes.Equal(used.encode([]byte("before"), []byte(text), c), got) || !bytes.Equal(new(encoder).encode([]byte("before"), []byte(text), c), got) {
				t.Errorf("%s of %d bytes: differs", c, n)
			}
			if back, err := decode(c, bytes.TrimPrefix(got, []byte("before"))); back != text || err != nil {
				t.Errorf("%s of %d bytes: %d come back, %v", c, n, len(back), err)
			}
		}
	}
}

// What a writer has not closed is never taken for whole.
func TestUnclosedWriter(t *testing.T) {
	e := new(encoder)
	for _, c := range []coding{gzipCoding, zstdCoding} {
		var out bytes.Buffer
		w := e.writer(&out, c)
		for range 1 << 17 {
			io.WriteString(w, "some text\n")
		}
		cut := out.Len()
		if got, err := decode(c, out.Bytes()); err == nil {
			t.Errorf("%s: %d bytes without an end are taken for %d", c, cut, len(got))
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := decode(c, out.Bytes()); err != nil || len(got) != 10<<17 || cut == 0 {
			t.Errorf("%s: closed after %d: %d bytes, %v", c, cut, len(got), err)
		}
		e.forget(c)
	}
}

// When every encoder is at work an answer goes as it is, unless that is refused.
func TestBusyEncoders(t *testing.T) {
	reg := prometheus.NewRegistry()
	s := New(Options{Registerer: reg})
	s.coder.whole, s.coder.streamed = newEncoders(1), newEncoders(0)
	body := bytes.Repeat([]byte("text "), 1000)
	answerTo := func(accepted string) (*answer, *httptest.ResponseRecorder) {
		r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", accepted)
		a := newAnswer(w, r, time.Minute)
		a.coder = s.coder
		a.Header().Set("Content-Type", "text/plain")
		return a, w
	}
	e := s.coder.whole.take(false)
	a, w := answerTo("gzip")
	a.send(200, body)
	if w.Header().Get("Content-Encoding") != "" || !bytes.Equal(w.Body.Bytes(), body) || counted(t, reg, "firn_http_compression_busy_total") != 1 {
		t.Errorf("all at work: %v", w.Header())
	}
	a, w = answerTo("gzip, identity;q=0")
	go s.coder.whole.put(e)
	a.send(200, body)
	if got, err := decode(gzipCoding, w.Body.Bytes()); got != string(body) || err != nil {
		t.Errorf("waited: %d bytes, %v", len(got), err)
	}
	saved := counted(t, reg, "firn_http_compression_saved_bytes_total")
	if n := counted(t, reg, "firn_http_compressed_answers_total"); n != 1 || saved != float64(len(body)-w.Body.Len()) {
		t.Errorf("%v answers, %v bytes saved", n, saved)
	}
	a, w = answerTo("gzip")
	snap := snapshotOf(bytes.NewReader(body), int64(len(body)))
	if err := s.sendBlob(a, a.request, snap); err != nil || w.Header().Get("Content-Encoding") != "" || !bytes.Equal(w.Body.Bytes(), body) {
		t.Errorf("blob: %v, %v", err, w.Header())
	}
}

// counted is the value of a counter without labels, or with one set of them.
func counted(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// A blob that ends too early is an error, and so is a client that leaves: what was sent of
// it is never closed.
func TestUnfinishedBlobIsNotClosed(t *testing.T) {
	s := New(Options{})
	text := strings.Repeat("some text\n", 1<<17)
	for _, c := range []coding{gzipCoding, zstdCoding} {
		for name, blob := range map[string]io.Reader{
			"failing": io.MultiReader(strings.NewReader(text), failing{}),
			"short":   strings.NewReader(text),
			"left":    strings.NewReader(text + "x"),
			"whole":   strings.NewReader(text + "x"),
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if name == "left" {
				cancel()
			}
			r, w := httptest.NewRequestWithContext(ctx, "GET", "/", nil), httptest.NewRecorder()
			r.Header.Set("Accept-Encoding", c.String())
			a := newAnswer(w, r, time.Minute)
			a.coder = s.coder
			a.Header().Set("Content-Type", "text/plain")
			err := s.sendBlob(a, r, snapshotOf(blob, int64(len(text)+1)))
			got, bad := decode(c, w.Body.Bytes())
			if whole := name == "whole"; (err == nil) != whole || (bad == nil) != whole {
				t.Errorf("%s, %s: %v; %d bytes decode with %v", c, name, err, len(got), bad)
			}
		}
	}
}

func TestEncodersAreBounded(t *testing.T) {
	e := newEncoders(2)
	a, b := e.take(false), e.take(false)
	if a == nil || b == nil || a == b || e.take(false) != nil {
		t.Fatal("not two encoders")
	}
	got := make(chan *encoder)
	go func() { got <- e.take(true) }()
	e.put(b)
	if <-got != b || e.take(false) != nil {
		t.Error("waited for another encoder")
	}
}
