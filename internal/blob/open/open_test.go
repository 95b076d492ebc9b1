package open_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/open"
)

func put(t *testing.T, s blob.Store) {
	t.Helper()
	if _, err := s.Put(t.Context(), "a/k.x", strings.NewReader("x"), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "with space", "100%")
	s, err := open.Open(t.Context(), (&url.URL{Scheme: "file", Path: dir}).String(), open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
	if _, err := os.Stat(filepath.Join(dir, "a", "k.x")); err != nil {
		t.Error(err)
	}
}

func TestMem(t *testing.T) {
	s, err := open.Open(t.Context(), "mem:", open.Options{Mem: true})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
}

// Every query key must reach the requests.
func TestS3(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodGet {
			fmt.Fprint(w, "<ListBucketResult/>")
			return
		}
		h := r.Header
		seen = append(seen, r.URL.Path, h.Get("X-Amz-Storage-Class"), h.Get("X-Amz-Server-Side-Encryption"),
			h.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"), fmt.Sprint(h.Get("X-Amz-Checksum-Crc32") != ""),
			fmt.Sprint(strings.Contains(h.Get("Authorization"), "/mars-1/s3/")), fmt.Sprint(strings.Contains(h.Get("Authorization"), "=id/")))
		w.Header().Set("Etag", `"e"`)
	}))
	defer srv.Close()
	creds := open.Options{AccessKey: "id", SecretKey: "secret"}
	for _, c := range []struct {
		u    string
		want []string
	}{
		{"s3://bucket?path_style=true&conditional_put=off&endpoint=" + url.QueryEscape(srv.URL),
			[]string{"/bucket/a/k.x", "", "", "", "true", "false", "true"}},
		{"s3://bucket/?path_style=true&conditional_put=off&endpoint=" + url.QueryEscape(srv.URL+"/"),
			[]string{"/bucket/a/k.x", "", "", "", "true", "false", "true"}},
		{"s3://bucket//p%20q/r/?path_style=true&conditional_put=off&region=mars-1&checksum=required-only&storage_class=STANDARD_IA" +
			"&sse=aws:kms&sse_key_id=key&endpoint=" + url.QueryEscape(srv.URL+"/base"),
			[]string{"/base/bucket/p q/r/a/k.x", "STANDARD_IA", "aws:kms", "key", "false", "true", "true"}},
	} {
		seen = nil
		s, err := open.Open(t.Context(), c.u, creds)
		if err != nil {
			t.Fatal(err)
		}
		put(t, s)
		if !slices.Equal(seen, c.want) {
			t.Errorf("%s: sent %q, want %q", c.u, seen, c.want)
		}
	}
}

func TestUnchecked(t *testing.T) {
	const u = "s3://bucket?path_style=true&endpoint=http://127.0.0.1:1"
	creds := open.Options{AccessKey: "id", SecretKey: "secret"}
	if _, err := open.Open(t.Context(), u, creds); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("open of a store that is away: %v", err)
	}
	creds.Unchecked = true
	s, err := open.Open(t.Context(), u, creds)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get(t.Context(), "k", 0, -1); !errors.Is(err, blob.ErrUnavailable) {
		t.Errorf("get: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for _, u := range []string{
		"", "bucket", "/var/lib", "file:", "file:///", "file:relative", "file://host/path", "file:///x?y=z", "mem:", "gs://bucket", "s3:", "s3:///x",
		"s3://id:secret@bucket", "s3://bucket#frag", "s3://bucket?regoin=x", "s3://bucket?region=a&region=b", "s3://bucket?region=",
		"s3://bucket?path_style=perhaps", "s3://bucket?checksum=none", "s3://bucket?conditional_put=yes", "s3://bucket?sse=rot13",
		"s3://bucket?sse_key_id=k", "s3://bucket?endpoint=minio:9000", "s3://bucket?%zz", "s3://bucket/" + strings.Repeat("p", 600), "s3://bucket?secret_key=hush%",
	} {
		s, err := open.Open(t.Context(), u, open.Options{AccessKey: "id", SecretKey: "hush"})
		if s != nil || !errors.Is(err, blob.ErrDenied) {
			t.Errorf("%q: %v", u, err)
		}
		if err != nil && (strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "hush")) {
			t.Errorf("%q: error tells a secret: %v", u, err)
		}
	}
}
