package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"firn/internal/admin"
	"firn/pkg/client"
	"firn/pkg/stream"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", "", asJSON)
	s.must(201, "PUT", "/v1/stream/a/b", "text", "Content-Type: text/plain")
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	nobody := "http://127.0.0.1:1"
	for _, c := range []struct {
		args string
		code int
		says string // on stdout of what went well, on stderr otherwise
	}{
		{"--help", 0, "Exit codes:"},
		{"stream cat --help", 0, "--follow"},
		{"version", 0, "firn"},
		{"health", 0, "ready"},
		{"bucket ls", 0, "demo     1"},
		{"stream ls demo", 0, "orders"},
		{"stream ls demo --prefix x", 0, "STREAM"},
		{"stream stat demo/orders", 0, "hot only"},
		{"stream cat default/a/b", 0, "text"},
		{"stream stat default/a/b", 0, "default/a/b"},
		{"seal demo/orders", 0, "cold and hot"},
		{"evict demo/orders", 0, "cold only"},
		{"segment dump ../../testdata/segment/v1-json.ndjson.zst", 0, "format"},
		{"segment dump ../../testdata/segment/v1-ref.hex", 1, "corrupt"},
		{"segment dump absent", 1, "no such file"},
		{"fly", 2, "firn --help"},
		{"stream cat", 2, "bucket/stream"},
		{"stream cat demo", 2, "BUCKET/STREAM"},
		{"stream cat x/orders", 2, "4 to 64 characters"},
		{"stream cat demo/a/b", 2, "without slash"},
		{"stream cat demo/orders --from 7", 2, "--from"},
		{"stream ls demo -o xml", 2, "--output"},
		{"stream export demo/orders", 2, "--output"},
		{"stream ls x", 2, "4 to 64 characters"},
		{"stream ls demo --url nowhere", 2, "not the URL of a server"},
		{"bucket ls --admin-url 127.0.0.1:4438", 2, "not the URL of a server"},
		{"stream cat demo/absent", 3, "does not exist"},
		{"stream export demo/absent -o " + filepath.Join(dir, "x"), 3, "does not exist"},
		{"stream stat demo/absent", 3, "does not exist"},
		{"seal demo/absent", 3, "does not exist"},
		{"stream ls absent", 3, "does not exist"},
		{"stream cat demo/orders --url " + nobody, 4, "firn serve"},
		{"stream stat demo/orders --admin-url " + nobody, 4, "--admin-url"},
		{"health --admin-url " + nobody, 1, "firn serve"},
		{"health --admin-url " + other.URL, 1, "404"},
		{"stream cat demo/orders --url " + other.URL, 3, ""}, // HEAD says no more than 404
	} {
		o := s.firn(strings.Fields(c.args)...)
		said := o.stderr
		if c.code == exitOK {
			said = o.stdout
		}
		if o.code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("firn %s: exit code %d, want %d and %q\n%s%s", c.args, o.code, c.code, c.says, o.stdout, o.stderr)
		}
	}
	s.mustStop()
}

// The codes mean the same wherever they are told.
func TestExitCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Exit codes")
	_, help, _ := strings.Cut(description, "Exit codes:")
	help = strings.Join(strings.Fields(help), " ")
	rows := regexp.MustCompile(`(?m)^\| (\d) \| (.+) \|$`).FindAllStringSubmatch(table, -1)
	for code := exitOK; code <= exitLoss; code++ {
		if code >= len(rows) || rows[code][1] != fmt.Sprint(code) {
			t.Fatalf("docs/operations.md does not have %d", code)
		}
		meaning, _, _ := strings.Cut(rows[code][2], ";")
		if want := fmt.Sprintf("%d %s", code, meaning); !strings.Contains(help, want) {
			t.Errorf("--help does not have %q", want)
		}
	}
	if len(rows) != exitLoss+1 {
		t.Errorf("docs/operations.md has %d codes", len(rows))
	}
}

func TestAdminToken(t *testing.T) {
	file := write(t, "s3cret\n")
	s := start(t, t.TempDir(), "--admin.token-file", file)
	for _, c := range []struct {
		env, args string
		code      int
	}{
		{"", "health", 0},
		{"", "bucket ls", 1},
		{"", "bucket ls --token wrong", 1},
		{"", "bucket ls --token s3cret", 0},
		{"FIRN_ADMIN_TOKEN=s3cret", "bucket ls", 0},
		{"FIRN_ADMIN_TOKEN_FILE=" + file, "bucket ls", 0},
		{"FIRN_ADMIN_TOKEN_FILE=" + file, "bucket ls --token wrong", 1},
	} {
		o := firn([]string{"FIRN_ADMIN_URL=" + s.admin, c.env}, strings.Fields(c.args)...)
		if o.code != c.code || c.code == 1 && !strings.Contains(o.stderr, "--token") {
			t.Errorf("%s firn %s: exit code %d, want %d\n%s", c.env, c.args, o.code, c.code, o.stderr)
		}
	}
	s.mustStop()
}

func TestJSONOutput(t *testing.T) {
	s := start(t, t.TempDir())
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[1,2]`, asJSON)

	var d admin.Description
	decode(t, s.mustFirn("seal", "demo/orders", "-o", "json"), &d)
	if d.Marks.Sealed != 4 || d.Marks.Tail != 4 || len(d.Segments) != 1 || d.Segments[0].To != 4 {
		t.Errorf("seal: %+v", d)
	}
	var b admin.Buckets
	decode(t, s.mustFirn("bucket", "ls", "-o", "json"), &b)
	if fmt.Sprint(b.Buckets) != "[{default 0} {demo 1}]" {
		t.Errorf("buckets: %v", b.Buckets)
	}
	var r admin.Readiness
	decode(t, s.mustFirn("health", "-o", "json"), &r)
	if !r.Ready {
		t.Errorf("health: %+v", r)
	}
	var l struct {
		Bucket  string
		Streams []client.ListedStream
	}
	decode(t, s.mustFirn("stream", "ls", "demo", "-o", "json"), &l)
	if l.Bucket != "demo" || len(l.Streams) != 1 || l.Streams[0].Tail != 4 {
		t.Errorf("streams: %+v", l)
	}
	s.mustStop()
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
}

// A listing is as long as the bucket, however long the server's pages are.
func TestListAllPages(t *testing.T) {
	const streams = 1001
	s := start(t, t.TempDir())
	s.must(201, "PUT", "/ds/demo", "")
	for i := range streams {
		s.must(201, "PUT", fmt.Sprintf("/ds/demo/s%04d", i), "")
	}
	if lines := strings.Count(s.mustFirn("stream", "ls", "demo"), "\n"); lines != streams+1 {
		t.Errorf("%d lines, want one each for the head and %d streams", lines, streams)
	}
	s.mustStop()
}

func TestCatFollows(t *testing.T) {
	s := start(t, t.TempDir(), "--live.long-poll-timeout", "100ms")
	s.must(201, "PUT", "/v1/stream/log", "one ", "Content-Type: text/plain")
	follow := func(args ...string) (*buffer, chan int, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		stdout, stderr, code := new(buffer), new(buffer), make(chan int, 1)
		args = append([]string{"stream", "cat", "-f", "default/log", "--url", s.url}, args...)
		go func() { code <- exitCode(run(ctx, args, nil, stdout, stderr), stderr) }()
		return stdout, code, cancel
	}
	all, allCode, _ := follow()
	until(t, "the first bytes are there", func() bool { return all.String() == "one " })
	fresh, freshCode, interrupt := follow("--from", "now")
	until(t, "both wait", func() bool { return s.samples()[`firn_http_live_readers{kind="long-poll"}`] == 2 })
	s.must(204, "POST", "/v1/stream/log", "two ", "Content-Type: text/plain")
	until(t, "the next bytes are there", func() bool { return all.String() == "one two " && fresh.String() == "two " })

	// Interrupted it ends well, and so it does when the stream ends.
	interrupt()
	if code := <-freshCode; code != exitOK {
		t.Errorf("interrupted: exit code %d", code)
	}
	s.must(204, "POST", "/v1/stream/log", "three", "Content-Type: text/plain", "Stream-Closed: true")
	if code := <-allCode; code != exitOK || all.String() != "one two three" {
		t.Errorf("closed: exit code %d after %q", code, all)
	}
	s.mustStop()
}

// What a snapshot stands for is left out, and that is said.
func TestCatBehindSnapshot(t *testing.T) {
	s := start(t, t.TempDir())
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[1,2]`, asJSON)
	tail := s.must(200, "HEAD", "/ds/demo/orders", "").Header.Get("Stream-Next-Offset")
	s.must(204, "PUT", "/ds/demo/orders/snapshot/"+tail, `{}`, asJSON)
	s.must(204, "POST", "/ds/demo/orders", `[3]`, asJSON)
	if o := s.firn("stream", "cat", "demo/orders"); o.stdout != "3\n" || !strings.Contains(o.stderr, "position 4") {
		t.Errorf("got %+v", o)
	}
	if o := s.firn("stream", "cat", "demo/orders", "--from=-1"); o.code != exitFailure || !strings.Contains(o.stderr, tail) {
		t.Errorf("before the snapshot: %+v", o)
	}
	s.mustStop()
}

// An export that breaks off anywhere goes on where it was, and the file appears whole.
func TestExportResumes(t *testing.T) {
	for _, c := range []struct{ name, contentType string }{{"lines", "application/json"}, {"bytes", "application/octet-stream"}} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, t.TempDir(), "--read.max-bytes", "1KiB")
			s.must(201, "PUT", "/ds/demo", "")
			s.must(201, "PUT", "/ds/demo/big", "", "Content-Type: "+c.contentType)
			want := ""
			for i := range 200 {
				record := fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("x", i))
				s.must(204, "POST", "/ds/demo/big", record, "Content-Type: "+c.contentType)
				if want += record; c.name == "lines" {
					want += "\n"
				}
			}
			file := filepath.Join(t.TempDir(), "big")
			args := []string{"stream", "export", "demo/big", "-o", file, "--url", flaky(t, s.url)}
			tries := 1
			for o := s.firn(args...); o.code != exitOK; o, tries = s.firn(args...), tries+1 {
				if o.code != exitUnavailable {
					t.Fatalf("try %d: exit code %d\n%s", tries, o.code, o.stderr)
				}
				if _, err := os.Stat(file); err == nil {
					t.Fatal("the file is there before it is complete")
				}
				tear(t, file)
			}
			if got, err := os.ReadFile(file); string(got) != want {
				t.Errorf("export of %d bytes differs from the %d written (%v)", len(got), len(want), err)
			}
			if left := objects(t, filepath.Dir(file), ".part"); tries < 4 || len(left) > 0 {
				t.Errorf("done at try %d, left %v", tries, left)
			}
			s.mustStop()
		})
	}
}

// flaky is a proxy of a server that fails each seventh request.
func flaky(t *testing.T, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1)%7 == 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// tear cuts a few bytes off the part of an export, as a crash may.
func tear(t *testing.T, file string) {
	t.Helper()
	for _, part := range objects(t, filepath.Dir(file), ".part") {
		info, err := os.Stat(part)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(part, max(info.Size()-5, 0)); err != nil {
			t.Fatal(err)
		}
	}
}

// The part of another stream, or of an earlier one of the name, is not taken for
// one's own.
func TestExportRefusesOtherPart(t *testing.T) {
	s := start(t, t.TempDir())
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", "1", asJSON)
	orders := stream.Name{Bucket: "demo", ID: "orders"}
	tail, err := stream.ParseOffset(s.must(200, "HEAD", "/ds/demo/orders", "").Header.Get("Stream-Next-Offset"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		of    stream.Name
		life  uint64
		holds string
	}{
		{"other stream", stream.Name{Bucket: "demo", ID: "other"}, tail.Life, "9\n"},
		{"earlier stream", orders, tail.Life - 1, "9\n"},
		{"longer", orders, tail.Life, "1\n2\n"},
	} {
		file := filepath.Join(t.TempDir(), "x")
		part := partName(file, c.of, stream.Offset{Life: c.life})
		if err := os.WriteFile(part, []byte(c.holds), 0o600); err != nil {
			t.Fatal(err)
		}
		o := s.firn("stream", "export", "demo/orders", "-o", file)
		if o.code != exitFailure || !strings.Contains(o.stderr, part) || !strings.Contains(o.stderr, "remove it") {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
	s.mustStop()
}
