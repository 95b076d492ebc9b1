package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"firn/internal/api"
)

// serve starts a server over a surface.
func serve(t *testing.T, o api.Options) *httptest.Server { return listen(t, api.New(o), o) }

// listen starts a server over s with the settings of production.
func listen(t testing.TB, s *api.Server, o api.Options) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = api.NewHTTPServer(s.Handler(), o)
	srv.Start()
	t.Cleanup(func() {
		srv.Close()
		s.Shutdown(ended)
	})
	return srv
}

// ended is a context that gives no time.
var ended, _ = context.WithTimeout(context.Background(), 0)

// raw sends a request line as it stands: the client of net/http would clean the path.
func raw(t *testing.T, srv *httptest.Server, method, path string, header ...string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: firn.test", "Connection: close"}, header...)
	if _, err := io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// problem decodes the body of an error.
func problem(t *testing.T, res *http.Response) (code string) {
	t.Helper()
	if got := res.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type of a problem is %q", got)
	}
	var p struct {
		Title  string
		Status int
		Detail string
		Code   string
	}
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil {
		t.Fatal(err)
	}
	if p.Status != res.StatusCode || p.Title != http.StatusText(p.Status) || p.Detail == "" {
		t.Errorf("problem %+v with status %d", p, res.StatusCode)
	}
	return p.Code
}

func TestRefusedPaths(t *testing.T) {
	srv := serve(t, api.Options{}) // nothing here may reach a store
	long := strings.Repeat("a", 118)
	tests := []struct {
		method, path string
		status       int
		code         string
	}{
		{"GET", "/", 404, "no_such_resource"},
		{"GET", "/ds", 404, "no_such_resource"},
		{"GET", "/ds/", 404, "no_such_resource"},
		{"PUT", "/ds/trial/", 404, "no_such_resource"},
		{"PUT", "/ds//trial/s", 404, "no_such_resource"},
		{"POST", "//ds/trial/s", 404, "no_such_resource"},
		{"POST", "/ds/trial//s", 404, "no_such_resource"},
		{"POST", "/ds/trial/z/../s", 404, "no_such_resource"},
		{"PUT", "/ds/trial/s/snapshot/", 404, "no_such_resource"},
		{"PUT", "/ds/trial/s/%73napshot", 404, "no_such_resource"},
		{"PUT", "/ds/trial/a%2Fb", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/..", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/%2e%2e", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/a..b", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/%2e%2e%2fother%2fx", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/a%00", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/%ff", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/" + long, 400, "stream_name_invalid"},
		{"GET", "/ds/trial/" + long, 400, "stream_name_invalid"},
		{"GET", "/ds/trial/" + long + "/bootstrap", 400, "stream_name_invalid"},
		{"PUT", "/ds/trial/" + long + "/snapshot/x", 400, "stream_name_invalid"},
		{"PUT", "/ds/abc", 400, "bucket_name_invalid"},
		{"PUT", "/ds/Trial", 400, "bucket_name_invalid"},
		{"PUT", "/ds/tri%2Fal", 400, "bucket_name_invalid"},
		{"GET", "/ds/abc/streams", 400, "bucket_name_invalid"},
		{"GET", "/ds/trial/streams?limit=0", 400, "limit_invalid"},
		{"GET", "/ds/trial/streams?limit=1001", 400, "limit_invalid"},
		{"GET", "/ds/trial/streams?limit=-1", 400, "limit_invalid"},
		{"GET", "/ds/trial/streams?limit=abc", 400, "limit_invalid"},
		{"GET", "/ds/trial/streams?limit=", 400, "limit_invalid"},
		{"GET", "/ds/trial/streams?limit=1&limit=2", 400, "query_repeated"},
		{"GET", "/ds/trial/streams?prefix=%zz", 400, "query_malformed"},
		{"PUT", "/ds/__ds", 400, "name_reserved"},
		{"GET", "/ds/__ds/subscriptions/x/callback", 400, "name_reserved"},
		{"PUT", "/ds/%5F%5Fds/x", 400, "bucket_name_invalid"},
		{"PUT", "/v1/stream/__ds", 400, "name_reserved"},
		{"PUT", "/v1/stream/__ds/subscriptions/x", 400, "name_reserved"},
		{"PUT", "/v1/stream/%5f_ds/x", 400, "stream_name_invalid"},
		{"PUT", "/v1/stream/", 404, "no_such_resource"},
		{"PUT", "/v1/stream/a//b", 400, "stream_name_invalid"},
		{"PUT", "/v1/stream/a/", 400, "stream_name_invalid"},
		{"PUT", "/v1/stream/a/../b", 400, "stream_name_invalid"},
		{"PUT", "/v1/stream/a%2fb", 400, "stream_name_invalid"},
		{"PUT", "/v1/stream/" + strings.Repeat("a/", 512) + "b", 400, "stream_name_invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			res := raw(t, srv, tt.method, tt.path)
			if res.StatusCode != tt.status {
				t.Fatalf("got %s, want %d", res.Status, tt.status)
			}
			if got := problem(t, res); got != tt.code {
				t.Errorf("got code %s, want %s", got, tt.code)
			}
		})
	}
}

func TestMethodNotAllowed(t *testing.T) {
	srv := serve(t, api.Options{})
	tests := []struct{ method, path, allow string }{
		{"POST", "/ds/trial", "DELETE, GET, HEAD, OPTIONS, PUT"},
		{"PUT", "/ds/trial/streams", "GET, HEAD, OPTIONS"},
		{"DELETE", "/ds/trial/%73treams", "GET, HEAD, OPTIONS"},
		{"PATCH", "/ds/trial/s", "DELETE, GET, HEAD, OPTIONS, POST, PUT"},
		{"PATCH", "/v1/stream/a/b", "DELETE, GET, HEAD, OPTIONS, POST, PUT"},
		{"POST", "/ds/trial/s/snapshot", "GET, HEAD, OPTIONS"},
		{"POST", "/ds/trial/s/snapshot/x", "DELETE, GET, HEAD, OPTIONS, PUT"},
		{"PUT", "/ds/trial/s/bootstrap", "GET, HEAD, OPTIONS"},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			res := raw(t, srv, tt.method, tt.path)
			if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != tt.allow {
				t.Errorf("got %s, Allow %q, want %q", res.Status, res.Header.Get("Allow"), tt.allow)
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	srv := serve(t, api.Options{})
	const length = "Content-Length: 0"
	tests := []struct {
		name, method, path string
		header             []string
		status             int
		code               string
	}{
		{"append without a body", "POST", "/v1/stream/s", []string{length}, 400, "body_required"},
		{"append without a type", "POST", "/v1/stream/s", []string{"Content-Length: 1", "", "x"}, 400, "content_type_required"},
		{"append of a broken type", "POST", "/v1/stream/s", []string{"Content-Length: 1", "Content-Type: text/", "", "x"}, 400, "content_type_malformed"},
		{"append with half a producer", "POST", "/v1/stream/s", []string{length, "Producer-Id: p"}, 400, "producer_headers_incomplete"},
		{"append with an empty sequence", "POST", "/v1/stream/s", []string{length, "Stream-Seq:"}, 400, "stream_seq_invalid"},
		{"append with a coding", "POST", "/v1/stream/s", []string{length, "Content-Encoding: gzip"}, 415, "content_encoding_unsupported"},
		{"append declared too large", "POST", "/v1/stream/s", []string{"Content-Length: 99999999999", "Expect: 100-continue"}, 413, "body_too_large"},
		{"create of a broken type", "PUT", "/v1/stream/s", []string{length, "Content-Type: foo"}, 400, "content_type_malformed"},
		{"create of an empty type", "PUT", "/v1/stream/s", []string{length, "Content-Type:"}, 400, "content_type_malformed"},
		{"create with both lifetimes", "PUT", "/v1/stream/s", []string{length, "Stream-TTL: 1", "Stream-Expires-At: 2030-01-01T00:00:00Z"}, 400, "lifetime_conflict"},
		{"read with a body", "GET", "/v1/stream/s", []string{"Content-Length: 1", "", "x"}, 400, "body_unexpected"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := raw(t, srv, tt.method, tt.path, tt.header...)
			if res.StatusCode != tt.status {
				t.Fatalf("got %s, want %d", res.Status, tt.status)
			}
			if got := problem(t, res); got != tt.code {
				t.Errorf("got code %s, want %s", got, tt.code)
			}
		})
	}
}

func TestHeadersOfEveryAnswer(t *testing.T) {
	srv := serve(t, api.Options{})
	for _, path := range []string{"/", "/ds/abc", "/ds/trial/streams?limit=0"} {
		for _, method := range []string{"GET", "HEAD", "PATCH", "OPTIONS"} {
			res := raw(t, srv, method, path)
			for name, want := range map[string]string{
				"X-Content-Type-Options":       "nosniff",
				"Cross-Origin-Resource-Policy": "cross-origin",
				"Cache-Control":                "no-store",
				"Access-Control-Allow-Origin":  "*",
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s %s: %s is %q", method, path, name, got)
				}
			}
		}
	}
}

func TestHeadErrorsHaveNoBody(t *testing.T) {
	res := raw(t, serve(t, api.Options{}), "HEAD", "/ds/abc")
	if res.StatusCode != 400 || res.Header.Get("Content-Type") != "" || res.ContentLength > 0 {
		t.Errorf("got %s, %v, %d bytes", res.Status, res.Header, res.ContentLength)
	}
}

func TestPreflight(t *testing.T) {
	request := []string{
		"Origin: https://app.example",
		"Access-Control-Request-Method: PUT",
		"Access-Control-Request-Headers: stream-ttl,producer-id,content-type",
	}
	res := raw(t, serve(t, api.Options{}), "OPTIONS", "/ds/trial/s", request...)
	if res.StatusCode != http.StatusNoContent || !strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), "PUT") {
		t.Errorf("got %s, %v", res.Status, res.Header)
	}
	allowed := strings.ToLower(res.Header.Get("Access-Control-Allow-Headers"))
	for _, name := range []string{"content-type", "if-none-match", "authorization", "stream-ttl", "stream-closed",
		"stream-forked-from", "stream-fork-offset", "stream-fork-sub-offset", "producer-id", "producer-epoch", "producer-seq"} {
		if !strings.Contains(allowed, name) {
			t.Errorf("%s is not allowed", name)
		}
	}
	res = raw(t, serve(t, api.Options{CORS: api.CORS{Off: true}}), "OPTIONS", "/ds/trial/s", request...)
	if res.StatusCode != http.StatusNoContent || res.Header.Get("Allow") == "" || hasCORS(res.Header) {
		t.Errorf("off: got %s, %v", res.Status, res.Header)
	}
}

func hasCORS(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			return true
		}
	}
	return false
}

func TestListedOrigins(t *testing.T) {
	srv := serve(t, api.Options{CORS: api.CORS{Origins: []string{"https://a.example", "https://b.example"}}})
	for origin, want := range map[string]string{
		"https://b.example":  "https://b.example",
		"https://c.example":  "",
		"http://b.example":   "",
		"https://b.example.": "",
	} {
		for _, method := range []string{"GET", "OPTIONS"} {
			res := raw(t, srv, method, "/ds/abc", "Origin: "+origin)
			if got := res.Header.Get("Access-Control-Allow-Origin"); got != want || res.Header.Get("Vary") != "Origin" {
				t.Errorf("%s from %s: got %q, Vary %q", method, origin, got, res.Header.Get("Vary"))
			}
			if want == "" && hasCORS(res.Header) {
				t.Errorf("%s from %s: headers %v", method, origin, res.Header)
			}
		}
	}
}

func TestStarAmongOrigins(t *testing.T) {
	srv := serve(t, api.Options{CORS: api.CORS{Origins: []string{"*"}}})
	if got := raw(t, srv, "GET", "/ds/abc").Header.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("got %q", got)
	}
}

func TestExposedHeaders(t *testing.T) {
	res := raw(t, serve(t, api.Options{}), "GET", "/ds/abc", "Origin: https://app.example")
	exposed := strings.ToLower(res.Header.Get("Access-Control-Expose-Headers"))
	for _, name := range []string{"etag", "location", "retry-after", "stream-next-offset", "stream-cursor",
		"stream-up-to-date", "stream-closed", "stream-ttl", "stream-expires-at", "stream-earliest-offset",
		"stream-snapshot-offset", "stream-sse-data-encoding", "producer-epoch", "producer-seq",
		"producer-expected-seq", "producer-received-seq"} {
		if !strings.Contains(exposed, name) {
			t.Errorf("%s is not exposed", name)
		}
	}
}
