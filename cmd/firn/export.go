package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"firn/pkg/client"
	"firn/pkg/stream"
)

type streamExport struct {
	clients
	streamArgument
	File string `name:"output" short:"o" required:"" placeholder:"FILE" help:"The file to write. It appears when it is complete; an export that was interrupted goes on when it is run again."`
}

// Run writes the bytes that a stream has at the moment to a file.
func (c *streamExport) Run(ctx context.Context, i *invocation) error {
	n, err := c.parse()
	if err != nil {
		return err
	}
	cl, err := c.client(i, once)
	if err != nil {
		return err
	}
	info, err := cl.Stream(n).Head(ctx)
	if err != nil {
		return c.advise(i, err)
	}
	tail, err := position(info.Tail)
	if err != nil {
		return err
	}
	p, err := openPart(c.File, n, stream.ModeOf(info.ContentType), tail)
	if err == nil && p == nil {
		at := stream.Offset{Life: tail.Life}
		if from := earliest(n, info, i.stderr); from != client.Beginning {
			if at, err = position(from); err != nil {
				return err
			}
		}
		p, err = createPart(c.File, n, at)
	}
	if err != nil {
		return err
	}
	defer p.file.Close()
	if err := c.copy(ctx, cl.Stream(n), p, tail, i.stderr); err != nil {
		return fmt.Errorf("%w\n%d bytes are kept in %s, run the same command again to go on",
			c.advise(i, err), p.at.Position-p.from, p.file.Name())
	}
	if err := p.publish(c.File); err != nil {
		return err
	}
	fmt.Fprintf(i.stderr, "%s: %s from position %d to %d\n", c.File, size(p.at.Position-p.from), p.from, p.at.Position)
	return nil
}

// progressEvery is the time between two lines on how far an export is.
const progressEvery = 2 * time.Second

// copy reads up to the tail. What is appended meanwhile is for another export.
func (c *streamExport) copy(ctx context.Context, s *client.Stream, p *part, tail stream.Offset, stderr io.Writer) error {
	told := time.Now()
	for page, err := range s.Read(ctx, client.Offset(p.at.String())) {
		if err != nil {
			return err
		}
		// A page that does not lead where it says it does would skip or repeat bytes.
		next, err := position(page.Next)
		if err != nil {
			return err
		}
		if p.at.Position+uint64(len(page.Data)) != next.Position {
			return fmt.Errorf("%w: %d bytes after position %d do not lead to %d", client.ErrAnswer, len(page.Data), p.at.Position, next.Position)
		}
		if err := p.write(page.Data[:min(uint64(len(page.Data)), tail.Position-p.at.Position)]); err != nil {
			return err
		}
		if p.at.Position == tail.Position {
			break
		}
		if time.Since(told) >= progressEvery {
			told = time.Now()
			fmt.Fprintf(stderr, "%s: %s of %s\n", c.File, size(p.at.Position-p.from), size(tail.Position-p.from))
		}
	}
	return nil
}

// position is what an offset of a firn server says.
func position(o client.Offset) (stream.Offset, error) {
	at, err := stream.ParseOffset(string(o))
	if err != nil {
		return at, fmt.Errorf("%w: offset %q; is this a firn server?", client.ErrAnswer, o)
	}
	return at, nil
}

// part is a file on its way to be an export. Its name says whose bytes it holds and
// where they begin, its size where they end; so there is no second file that could
// disagree with it.
type part struct {
	file *os.File
	from uint64
	at   stream.Offset // behind its last byte
}

// errOtherPart: there is a part of another export.
var errOtherPart = errors.New("is left from the export of another stream, or of an earlier one of this name: remove it to begin anew")

// partName is FILE.{stream}.{offset}.part
func partName(file string, n stream.Name, from stream.Offset) string {
	return fmt.Sprintf("%s.%s.%s.part", file, nameHash(n), from)
}

func nameHash(n stream.Name) string {
	h := fnv.New32a()
	h.Write([]byte(n.String()))
	return fmt.Sprintf("%08x", h.Sum32())
}

func createPart(file string, n stream.Name, from stream.Offset) (*part, error) {
	f, err := os.OpenFile(partName(file, n, from), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("begin export: %w", err)
	}
	p := &part{file: f, from: from.Position, at: from}
	return p, p.lock()
}

// openPart finds the part of an interrupted export; nil if there is none.
func openPart(file string, n stream.Name, mode stream.Mode, tail stream.Offset) (*part, error) {
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return nil, fmt.Errorf("look for an interrupted export: %w", err)
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), filepath.Base(file)+".")
		rest, ok2 := strings.CutSuffix(rest, ".part")
		hash, offset, ok3 := strings.Cut(rest, ".")
		from, err := stream.ParseOffset(offset)
		if !ok || !ok2 || !ok3 || err != nil {
			continue
		}
		name := filepath.Join(filepath.Dir(file), e.Name())
		if hash != nameHash(n) || from.Life != tail.Life {
			return nil, fmt.Errorf("%s %w", name, errOtherPart)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("go on with export: %w", err)
		}
		p := &part{file: f, from: from.Position, at: from}
		if err := p.lock(); err != nil {
			return nil, err
		}
		if err := p.resume(mode, tail); err != nil {
			f.Close()
			return nil, fmt.Errorf("go on with export: %w", err)
		}
		return p, nil
	}
	return nil, nil
}

// lock keeps a second export out.
func (p *part) lock() error {
	if err := syscall.Flock(int(p.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		p.file.Close()
		return fmt.Errorf("%s is being written by another export: %w", p.file.Name(), err)
	}
	return nil
}

// resume cuts what an interruption left of a message, and goes to the end.
func (p *part) resume(mode stream.Mode, tail stream.Offset) error {
	end, err := p.file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if mode == stream.JSON {
		if end, err = lastLine(p.file, end); err != nil {
			return err
		}
	}
	if p.from+uint64(end) > tail.Position {
		return fmt.Errorf("%s has more bytes than the stream: remove it to begin anew", p.file.Name())
	}
	if err := p.file.Truncate(end); err != nil {
		return err
	}
	p.at.Position = p.from + uint64(end)
	_, err = p.file.Seek(end, io.SeekStart)
	return err
}

// lastLine returns the position behind the last LF before end, 0 if there is none.
func lastLine(r io.ReaderAt, end int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end > 0 {
		b := buf[:min(int64(len(buf)), end)]
		if _, err := r.ReadAt(b, end-int64(len(b))); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return end - int64(len(b)) + int64(i) + 1, nil
		}
		end -= int64(len(b))
	}
	return 0, nil
}

func (p *part) write(b []byte) error {
	n, err := p.file.Write(b)
	p.at.Position += uint64(n)
	if err != nil {
		return fmt.Errorf("write export: %w", err)
	}
	return nil
}

// publish gives the complete file its name, durably.
func (p *part) publish(file string) error {
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("sync export: %w", err)
	}
	if err := os.Rename(p.file.Name(), file); err != nil {
		return fmt.Errorf("finish export: %w", err)
	}
	dir, err := os.Open(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("finish export: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return fmt.Errorf("finish export: %w", err)
	}
	return nil
}
