//go:build integration

package trials_test

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLimits is about what a machine has little of.
func TestLimits(t *testing.T) {
	t.Run("DU-2e7", readersThatTakeNothing)
	t.Run("DU-d37", fewOpenFiles)
}

// hotSize adds up the files of the hot tier.
func (m *machine) hotSize() (n int64) {
	m.t.Helper()
	err := filepath.WalkDir(filepath.Join(m.dir, "hot"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreGone(err)
		}
		i, err := d.Info()
		if err == nil {
			n += i.Size()
		}
		return ignoreGone(err)
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return n
}

func ignoreGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// readersThatTakeNothing ask for hot pages and do not read the answers, while much more
// than the budget is appended, sealed and evicted.
func readersThatTakeNothing(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, "--seal.max-age", "1s", "--hot.max-bytes", "4MiB", "--hot.hard-bytes", "16MiB", "--seal.target-bytes", "1MiB")
	l := open(m, 4)
	l.append(9, 100_000)
	for i := range 10 {
		conn, err := net.Dial("tcp", m.url[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// What waits on the way is little.
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", l.entries[i%4].path); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReaderSize(conn, 16).ReadString(' '); err != nil || line != "HTTP/1.1 " {
			t.Fatalf("%q, %v", line, err)
		}
	}
	// Twice the budget and a memtable are promised for values; five memtables of logs,
	// and what is being rewritten, come on top.
	const limit = 2*4<<20 + 16<<20 + 8<<20
	for range scaled(10, 500) {
		l.append(25, 100_000) // 10 MB a round
		if n := m.hotSize(); n > limit {
			t.Errorf("the hot tier has %d MiB, with a budget of 4", n>>20)
		}
	}
	l.settle()
}

// fewOpenFiles lets a server have 256 files, and has more clients come than that.
func fewOpenFiles(t *testing.T) {
	a := newArchive(t)
	m := equip(t, a, filepath.Join(t.TempDir(), "data"), "--seal.max-age", "1s", "--hot.max-bytes", "256KiB", "--hot.hard-bytes", "1GiB")
	m.under = []string{"sh", "-c", `ulimit -n 256; exec "$@"`, "sh"}
	m.start()
	m.want(201, "PUT", "/ds/trial", "")
	if !strings.Contains(m.log.String(), "limit of open files is low") {
		t.Error("the log does not warn")
	}
	l := open(m, 4)
	l.append(10, 50_000)
	m.cool(l.paths()...)
	// Readers beyond what is served at a time wait until others leave.
	var readers sync.WaitGroup
	var served atomic.Int64
	conns := make([]net.Conn, 200)
	for i := range conns {
		conn, err := net.Dial("tcp", m.url[len("http://"):])
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
		if _, err := fmt.Fprintf(conn, "GET %s?offset=-1&live=sse HTTP/1.1\r\nHost: x\r\n\r\n", l.entries[i%4].path); err != nil {
			t.Fatal(err)
		}
		readers.Go(func() {
			if line, err := bufio.NewReader(conn).ReadString('\n'); err == nil && strings.Contains(line, "200") {
				served.Add(1)
			}
		})
	}
	m.until("as many are served as may be", func() bool { return served.Load() >= 90 })
	for _, c := range conns[:150] {
		c.Close()
	}
	m.until("those that waited are served", func() bool { return served.Load() >= 140 })
	for range scaled(3, 100) {
		l.append(10, 50_000)
		for _, e := range l.entries {
			if _, err := e.read("-1"); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range conns[150:] {
		c.Close()
	}
	readers.Wait()
	l.settle()

	m.kill()
	m.under[2] = `ulimit -n 128; exec "$@"`
	if code, out := m.attempt(); code != 1 || !strings.Contains(out, "limit of open files is too low") {
		t.Errorf("with 128 files: exit code %d\n%s", code, out)
	}
}
