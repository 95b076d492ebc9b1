package api_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"firn/internal/api"
)

// What net/http answers by itself is no problem+json, as docs/protocol.md says.
func TestAnswersOfTheHTTPServer(t *testing.T) {
	srv := serve(t, api.Options{})
	const get, host = "GET /ds/trial HTTP/1.1\r\n", "Host: x\r\n"
	long := "X: " + strings.Repeat("x", 80<<10) + "\r\n"
	for name, tt := range map[string]struct {
		request string
		status  int
		plain   bool
	}{
		"malformed":       {"GET\r\n\r\n", 400, true},
		"without a host":  {get + "\r\n", 400, true},
		"two hosts":       {get + host + host + "\r\n", 400, true},
		"bad header":      {get + host + "a b: c\r\n\r\n", 400, true},
		"two lengths":     {get + host + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, true},
		"long header":     {get + host + long + "\r\n", 431, true},
		"transfer coding": {get + host + "Transfer-Encoding: gzip\r\n\r\n", 501, true},
		"later version":   {strings.Replace(get, "1.1", "3.0", 1) + host + "\r\n", 505, true},
		"expectation":     {get + host + "Expect: a-miracle\r\n\r\n", 417, false},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			go io.WriteString(conn, tt.request)
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != tt.status || !res.Close || strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") != tt.plain {
				t.Errorf("got %s, %v", res.Status, res.Header)
			}
		})
	}
}
