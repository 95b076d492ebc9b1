package trials_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// dial opens a connection that no client library stands in front of.
func (c *client) dial() *net.TCPConn {
	c.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn)
}

// raw sends bytes as they stand and returns all answers until the server closes. The
// server has to close.
func (c *client) raw(bytes string) []answer {
	c.t.Helper()
	conn := c.dial()
	defer conn.Close()
	send(c.t, conn, bytes)
	return answers(c.t, conn)
}

func send(t testing.TB, conn net.Conn, bytes string) {
	t.Helper()
	if _, err := io.WriteString(conn, bytes); err != nil {
		t.Fatal(err)
	}
}

// answers reads what comes until the connection ends.
func answers(t testing.TB, conn net.Conn) []answer {
	t.Helper()
	in := bufio.NewReader(conn)
	var all []answer
	for {
		res, err := http.ReadResponse(in, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection stays open after %+v", all)
		}
		if err != nil {
			return all
		}
		b, _ := io.ReadAll(res.Body)
		all = append(all, answer{res.StatusCode, res.Header, string(b)})
	}
}
