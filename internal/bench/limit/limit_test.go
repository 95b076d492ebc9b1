package limit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"firn/internal/bench/limit"
)

func TestServer(t *testing.T) {
	dir := t.TempDir()
	s, err := limit.NewServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	defer func() {
		srv.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	post := func(path, body string) (*http.Response, string) {
		t.Helper()
		resp, err := http.Post(srv.URL+path, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}
	recorded, err := json.Marshal(limit.Recorded{Status: 201, Body: []byte("answer"), Header: http.Header{
		"Stream-Next-Offset": {"7"}, "Content-Length": {"999"}, "Date": {"never"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, number := post(limit.PathRecord, string(recorded))
	for _, root := range []string{limit.PathPlay, limit.PathSynced} {
		resp, body := post(root+number+"/any/path", "some bytes")
		if resp.StatusCode != 201 || body != "answer" || resp.Header.Get("Stream-Next-Offset") != "7" || resp.Header.Get("Date") == "never" {
			t.Errorf("%s answers %s %v %q", root, resp.Status, resp.Header, body)
		}
		if resp, _ := post(root+"5/x", ""); resp.StatusCode != 404 {
			t.Errorf("%s of an answer that was not recorded: %s", root, resp.Status)
		}
	}
	// Only what was to be synced is in the log.
	if log, err := os.ReadFile(filepath.Join(dir, "synced.log")); err != nil || string(log) != "some bytes" {
		t.Errorf("the log has %q, %v", log, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(srv.URL + limit.PathFiles + "file")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "content" {
		t.Errorf("the file is %q, %v", b, err)
	}
}

// What was acknowledged is in the file, all of it once.
func TestLogKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := limit.OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			line := fmt.Appendf(nil, "%03d\n", i)
			if err := l.Append(line); err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(path); err != nil || !bytes.Contains(b, line) {
				t.Errorf("acknowledged %q is not there, %v", line, err)
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || len(b) != 200*4 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
