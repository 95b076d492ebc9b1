package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"firn/internal/api"
)

// A snapshot that is on its way, and may never arrive, holds up neither appends nor
// readers, and nobody sees anything of it (X§2.2).
func TestPublicationHoldsUpNobody(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "application/json", "[1]")
	at := c.append("/ds/trial/s", "application/json", "[2]")
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const blob = "the state at two"
	fmt.Fprintf(conn, "PUT /ds/trial/s/snapshot/%s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", at, len(blob))
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // the server waits for the body
		t.Fatalf("got %q, %v", line, err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "\r\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	io.WriteString(conn, blob[:3])

	waiting := c.subscribe("/ds/trial/s?offset=now&live=sse")
	waiting.control()
	tail := c.append("/ds/trial/s", "application/json", "[3]")
	if data, control := waiting.data(); data != "[3]" || control.StreamNextOffset != tail {
		t.Errorf("a live reader got %q to %s", data, control.StreamNextOffset)
	}
	if a := c.want(200, "GET", "/ds/trial/s", ""); a.body != "[1,2,3]" {
		t.Errorf("a reader got %s", a.body)
	}
	if a := c.want(200, "GET", "/ds/trial/s/bootstrap", ""); a.header.Get("Stream-Snapshot-Offset") != "-1" || a.next() != tail {
		t.Errorf("bootstrap: %v", a.header)
	}
	c.want(404, "GET", "/ds/trial/s/snapshot", "")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, "overtakes it")

	io.WriteString(conn, blob[3:])
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != 204 {
		t.Fatalf("publication: %v, %v", res, err)
	}
	if a := c.want(200, "GET", "/ds/trial/s/snapshot/"+at, ""); a.body != blob {
		t.Errorf("the snapshot is %q", a.body)
	}
	// What was appended meanwhile is no part of it, and still there.
	if a := c.want(200, "GET", "/ds/trial/s?offset="+at, ""); a.body != "[3]" || a.next() != tail {
		t.Errorf("after the snapshot: %s to %s", a.body, a.next())
	}
}
