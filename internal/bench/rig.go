package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"firn/internal/bench/exchange"
	"firn/internal/bench/limit"
)

// rig is what the cases of a run share: the server, its peer, and the limits, each made
// when the first case asks for it.
type rig struct {
	o    Options
	dir  string
	name string // of this run, in names of streams

	first         *server
	second        *server
	limits        *exchange.Endpoint
	limitsProcess *process
	streams       int
}

func newRig(o Options) (*rig, error) {
	dir, err := os.MkdirTemp(o.Dir, "firn-bench-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	return &rig{o: o, dir: dir, name: strconv.FormatInt(time.Now().UnixNano(), 36)}, nil
}

// close ends all processes and removes all files.
func (r *rig) close() error {
	var errs []error
	for _, s := range []*server{r.first, r.second} {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	if r.limitsProcess != nil {
		errs = append(errs, r.limitsProcess.stop())
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// server is the one that most cases share.
func (r *rig) server(ctx context.Context) (*server, error) {
	if r.first != nil {
		return r.first, nil
	}
	if r.o.URL == "" {
		s, err := startServer(ctx, r.o, filepath.Join(r.dir, "shared"))
		r.first = s
		return s, err
	}
	s := new(server)
	if err := s.use(ctx, r.o.URL, r.o.Flat, r.o.Fields...); err != nil {
		return nil, err
	}
	r.first = s
	return s, nil
}

// servers are the server and, if there is one, its peer, with their names.
func (r *rig) servers(ctx context.Context) ([]named, error) {
	s, err := r.server(ctx)
	if err != nil || r.o.VS == "" {
		return []named{{sideServer, s}}, err
	}
	if r.second == nil {
		p := new(server)
		if err := p.use(ctx, r.o.VS, true); err != nil {
			return nil, err
		}
		r.second = p
	}
	return []named{{sideServer, s}, {sidePeer, r.second}}, nil
}

type named struct {
	name string
	*server
}

// Names of sides that several cases have.
const (
	sideServer   = "server"
	sidePeer     = "peer"
	sideExchange = "empty handler"
	sideSynced   = "synced log"
)

// own starts a server for one case, in a directory of its own.
func (r *rig) own(ctx context.Context, args ...string) (*server, string, error) {
	dir, err := os.MkdirTemp(r.dir, "own-")
	if err != nil {
		return nil, "", fmt.Errorf("make directory: %w", err)
	}
	s, err := startServer(ctx, r.o, dir, args...)
	return s, dir, err
}

// names returns n names of streams that no other case has.
func (r *rig) names(n int) []string {
	all := make([]string, n)
	for i := range all {
		r.streams++
		all[i] = fmt.Sprintf("%s-%06d", r.name, r.streams)
	}
	return all
}

// limit is the server that has nothing to do.
func (r *rig) limit(ctx context.Context) (*exchange.Endpoint, error) {
	if r.limits != nil {
		return r.limits, nil
	}
	dir := filepath.Join(r.dir, "limits")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	p, err := start(ctx, r.o, "bench-limit", dir)
	if err != nil {
		return nil, err
	}
	r.limitsProcess = p
	r.limits, err = exchange.Parse(strings.TrimSpace(p.first))
	return r.limits, err
}

// play returns where an answer like the given one is given to everything that is sent.
// root is [limit.PathPlay] or [limit.PathSynced].
func (r *rig) play(ctx context.Context, a answer, root string) (*exchange.Endpoint, error) {
	e, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	recorded := limit.Recorded{Status: a.Status, Header: http.Header{}, Body: a.body}
	for line := range strings.Lines(string(a.Header)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		recorded.Header.Add(name, strings.TrimSpace(value))
	}
	body, err := json.Marshal(recorded)
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	number, err := ask(ctx, e, e.Request("POST", limit.PathRecord, body, typeJSON), 200)
	return e.Below(root + string(number.body)), err
}

// file makes a file that the limits send, and returns where it is.
func (r *rig) file(ctx context.Context, size int64) (*exchange.Endpoint, error) {
	e, err := r.limit(ctx)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("file-%d", size)
	body, _ := newPayload(typeBytes).body(1<<20, 256)
	f, err := os.Create(filepath.Join(r.dir, "limits", name))
	if err != nil {
		return nil, fmt.Errorf("make file: %w", err)
	}
	for at := int64(0); at < size && err == nil; at += int64(len(body)) {
		_, err = f.Write(body[:min(int64(len(body)), size-at)])
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("make file: %w", err)
	}
	return e.Below(limit.PathFiles + name), nil
}
