package s3_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"firn/internal/blob"
)

// deleter is a store whose batch deletion behaves as batch says, and which counts.
type deleter struct {
	mu               sync.Mutex
	batch            func(w http.ResponseWriter, keys []string)
	single           int // status of a single deletion
	batches, singles int
}

func (d *deleter) serve(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Method == http.MethodDelete {
		d.singles++
		if d.single == http.StatusNoContent {
			w.WriteHeader(d.single)
			return
		}
		refuse(w, d.single, map[int]string{403: "AccessDenied", 404: "NoSuchKey"}[d.single])
		return
	}
	d.batches++
	var in struct {
		Object []struct{ Key string }
	}
	xml.NewDecoder(r.Body).Decode(&in)
	var keys []string
	for _, o := range in.Object {
		keys = append(keys, o.Key)
	}
	d.batch(w, keys)
}

func deleteKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%04d", i)
	}
	return keys
}

func failedKeys(t *testing.T, err error) map[string]error {
	t.Helper()
	if err == nil {
		return nil
	}
	var de *blob.DeleteError
	if !errors.As(err, &de) {
		t.Fatalf("error is %v, want a DeleteError", err)
	}
	return de.Failed
}

func TestDeleteHalfFails(t *testing.T) {
	d := &deleter{batch: func(w http.ResponseWriter, keys []string) {
		fmt.Fprint(w, "<DeleteResult>")
		for i, k := range keys {
			switch i % 4 {
			case 0:
				fmt.Fprintf(w, "<Deleted><Key>%s</Key></Deleted>", k)
			case 1:
				fmt.Fprintf(w, "<Error><Key>%s</Key><Code>AccessDenied</Code></Error>", k)
			case 2:
				fmt.Fprintf(w, "<Error><Key>%s</Key><Code>SlowDown</Code></Error>", k)
			case 3: // says nothing
			}
		}
		fmt.Fprint(w, "</DeleteResult>")
	}}
	s := rude(t, d.serve)
	keys := deleteKeys(1010)
	failed := failedKeys(t, s.Delete(t.Context(), keys...))
	for i, k := range keys {
		want := []error{nil, blob.ErrDenied, blob.ErrUnavailable, blob.ErrUnavailable}[i%1000%4]
		if !errors.Is(failed[k], want) {
			t.Fatalf("%s: %v, want %v", k, failed[k], want)
		}
	}
	if d.batches != 2 || d.singles != 0 {
		t.Errorf("%d batches and %d single deletions, want 2 and 0", d.batches, d.singles)
	}
}

func TestDeleteWithoutBatch(t *testing.T) {
	for _, c := range []struct {
		status  int
		code    string
		batches int // for two calls
	}{
		{501, "NotImplemented", 1},
		{405, "MethodNotAllowed", 1},
		{400, "InvalidRequest", 2}, // wants MD5; may be about this batch only
		{403, "AccessDenied", 2},
	} {
		t.Run(c.code, func(t *testing.T) {
			d := &deleter{single: http.StatusNoContent, batch: func(w http.ResponseWriter, _ []string) { refuse(w, c.status, c.code) }}
			s := rude(t, d.serve)
			for range 2 {
				if err := s.Delete(t.Context(), deleteKeys(20)...); err != nil {
					t.Fatal(err)
				}
			}
			if d.batches != c.batches || d.singles != 40 {
				t.Errorf("%d batches and %d single deletions, want %d and 40", d.batches, d.singles, c.batches)
			}
		})
	}
}

func TestDeleteNoRight(t *testing.T) {
	d := &deleter{single: 403, batch: func(w http.ResponseWriter, _ []string) { refuse(w, 403, "AccessDenied") }}
	s := rude(t, d.serve)
	keys := deleteKeys(1000)
	failed := failedKeys(t, s.Delete(t.Context(), keys...))
	for _, k := range keys {
		if !errors.Is(failed[k], blob.ErrDenied) {
			t.Fatalf("%s: %v", k, failed[k])
		}
	}
	if d.singles > 20 {
		t.Errorf("%d single deletions of 1000 tried without the right", d.singles)
	}
}

func TestDeleteUnavailable(t *testing.T) {
	d := &deleter{batch: func(w http.ResponseWriter, _ []string) { refuse(w, 503, "SlowDown") }}
	s := rude(t, d.serve)
	failed := failedKeys(t, s.Delete(t.Context(), deleteKeys(10)...))
	if len(failed) != 10 || !errors.Is(failed["k0003"], blob.ErrUnavailable) || d.singles != 0 {
		t.Errorf("%d failed, %d single deletions: %v", len(failed), d.singles, failed["k0003"])
	}
}

func TestDeleteMissing(t *testing.T) {
	d := &deleter{single: 404}
	if err := rude(t, d.serve).Delete(t.Context(), "k"); err != nil {
		t.Error(err)
	}
}

func TestListingThatMisbehaves(t *testing.T) {
	item := func(k string) string {
		return "<Contents><Key>" + k + "</Key><Size>1</Size><ETag>e</ETag></Contents>"
	}
	for name, page := range map[string]string{
		"out of order":    item("b") + item("a"),
		"twice":           item("a") + item("a"),
		"another prefix":  item("zz"),
		"never ends":      item("a") + "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>",
		"no continuation": item("a") + "<IsTruncated>true</IsTruncated>",
	} {
		t.Run(name, func(t *testing.T) {
			s := rude(t, func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, "<ListBucketResult>"+page+"</ListBucketResult>")
			})
			prefix := ""
			if strings.Contains(page, "zz") {
				prefix = "a"
			}
			n := 0
			wantError(t, s.List(t.Context(), prefix, "", func(blob.Info) error {
				if n++; n > 10 {
					return errors.New("endless")
				}
				return nil
			}), blob.ErrCorrupt)
		})
	}
}
