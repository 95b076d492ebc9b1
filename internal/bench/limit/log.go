package limit

import (
	"fmt"
	"os"
)

// Log is a file to which bodies are appended and synced, many by one sync. It is the
// least that a server can do which acknowledges what is on the disk.
type Log struct {
	file    *os.File
	queue   chan *entry
	stopped chan struct{}
}

type entry struct {
	body []byte
	done chan error
}

// maxEntries is what one sync takes.
const maxEntries = 4096

// OpenLog makes a log. Close it once nothing is appended any more.
func OpenLog(path string) (*Log, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("make log: %w", err)
	}
	l := &Log{file: f, queue: make(chan *entry, maxEntries), stopped: make(chan struct{})}
	go l.run()
	return l, nil
}

// Append returns when the body is on the disk.
func (l *Log) Append(body []byte) error {
	e := &entry{body, make(chan error, 1)}
	l.queue <- e
	return <-e.done
}

func (l *Log) run() {
	defer close(l.stopped)
	var batch []*entry
	var buf []byte
	for e := range l.queue {
		batch = append(batch[:0], e)
		for len(batch) < maxEntries && len(l.queue) > 0 {
			batch = append(batch, <-l.queue)
		}
		buf = buf[:0]
		for _, e := range batch {
			buf = append(buf, e.body...)
		}
		_, err := l.file.Write(buf)
		if err == nil {
			err = datasync(l.file)
		}
		for _, e := range batch {
			e.done <- err
		}
	}
}

// Close ends the log.
func (l *Log) Close() error {
	close(l.queue)
	<-l.stopped
	return l.file.Close()
}
