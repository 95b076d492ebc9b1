package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"firn/internal/bench/exchange"
)

// process is a child: the program that runs, started with other arguments.
type process struct {
	cmd   *exec.Cmd
	input io.Closer // what a child reads until this process is gone
	log   *tail
	began time.Time
	first string        // the first line that it printed
	ready time.Duration // until then
}

// stopTime is how long a child may take to end.
const stopTime = 20 * time.Second

// start runs the program and waits for its first line. When ctx ends the child is told
// to end, too.
func start(ctx context.Context, o Options, args ...string) (*process, error) {
	p := &process{log: new(tail)}
	p.cmd = exec.CommandContext(ctx, o.Program, args...)
	p.cmd.Env = o.Environ
	p.cmd.Stderr = p.log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopTime
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	lines := bufio.NewReader(out)
	p.first, err = lines.ReadString('\n')
	p.ready = time.Since(p.began)
	if err != nil {
		err = errors.Join(fmt.Errorf("start %s: it ended: %w", args[0], p.cmd.Wait()), ctx.Err())
		return nil, fmt.Errorf("%w\n%s", err, p.log)
	}
	return p, nil
}

// stop tells the child to end and waits for it.
func (p *process) stop() error {
	p.input.Close()
	p.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(stopTime, func() { p.cmd.Process.Kill() })
	defer kill.Stop()
	err := p.cmd.Wait()
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGTERM {
		return nil // it came when the child was about to end by itself
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("child %s: %w\n%s", p.cmd.Args[1], err, p.log)
	}
	return nil
}

// resident is the memory that the child takes, in bytes; 0 where that is not known.
func (p *process) resident() int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}

// tail keeps the last of what a child logs.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-8<<10):]
	return len(p), nil
}

func (t *tail) String() string { return string(t.b) }

// served is the line with which a server says that it is there.
var served = regexp.MustCompile(`^firn serves (https?://\S+), admin on (http://\S+),`)

// startServer starts a firn server over a data directory.
func startServer(ctx context.Context, o Options, dir string, args ...string) (*server, error) {
	args = append([]string{"serve", "--listen=127.0.0.1:0", "--admin.listen=127.0.0.1:0", "--data-dir=" + dir, "--log.level=warn"}, args...)
	if o.Cold != "" {
		args = append(args, "--cold="+o.Cold)
	}
	p, err := start(ctx, o, append(args, o.ServerArgs...)...)
	if err != nil {
		return nil, err
	}
	m := served.FindStringSubmatch(p.first)
	if m == nil {
		return nil, errors.Join(fmt.Errorf("the server said %q", p.first), p.stop())
	}
	s := &server{process: p}
	if s.admin, err = exchange.Parse(m[2]); err == nil {
		err = s.use(ctx, m[1], false)
	}
	if err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return s, nil
}
