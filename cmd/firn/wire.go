package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"firn/compactor"
	"firn/internal/admin"
	"firn/internal/api"
	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/blob/fs"
	"firn/internal/blob/limit"
	"firn/internal/blob/meter"
	"firn/internal/blob/open"
	"firn/internal/blob/retry"
	"firn/internal/config"
	"firn/internal/scrub"
	"firn/internal/subscribe"
	"firn/internal/subscribe/webhook"
	"firn/internal/verify"
	"firn/pkg/segment"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// parts is the server put together, inside out: hot tier, cold tier, the two as
// one, the compactor, the surfaces.
type parts struct {
	metrics   *prometheus.Registry
	hot       *hot.Store
	cold      *cold.Store
	local     *cold.Store // nil when there are no local blobs
	compactor *compactor.Compactor
	scrub     *scrub.Scrubber
	backup    *backup.Runner // nil when no copies are made
	// The object stores behind cold and local, nil where there is none.
	remoteBlobs, localBlobs blob.Store
	// coldTrouble tells what is wrong with remoteBlobs.
	coldTrouble func() (time.Time, error)
	// subscriptions are woken over the hot tier alone.
	subscriptions *subscribe.Engine
	api           *api.Server
	apiOptions    api.Options
	admin         *admin.Server
}

func build(ctx context.Context, c config.Config, files descriptors, log *slog.Logger) (_ *parts, err error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p := &parts{metrics: registry}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	// First of all, as it locks the data directory.
	o := hotOptions(c, log, registry)
	o.OpenFiles = files.tables
	if p.hot, err = hot.Open(filepath.Join(c.DataDir, "hot"), o); err != nil {
		return nil, err
	}
	spool := filepath.Join(c.DataDir, "spool")
	if err := emptyDir(spool); err != nil {
		return nil, err
	}
	if err := p.openCold(ctx, c, log, registry); err != nil {
		return nil, err
	}
	store := tier.New(tier.Options{
		Hot: p.hot, Cold: p.cold, Local: p.local, SpoolDir: spool, Logger: log,
		ReadBytes: int(c.Read.MaxBytes), BootstrapBytes: int(c.Bootstrap.MaxBytes),
		BootstrapMemory: int64(c.Bootstrap.MemoryBytes), SnapshotBytes: int64(c.Limits.SnapshotBytes),
	})
	encoder, err := segment.NewEncoder(segment.Options{Level: level(c.Seal.Compression), Concurrency: c.Seal.Concurrency})
	if err != nil {
		return nil, err
	}
	p.compactor, err = compactor.New(compactor.Options{
		Hot: p.hot, Cold: p.cold, Local: p.local, Encoder: encoder, Logger: log, Registerer: registry,
		Policy: compactor.Policy{
			Budget: uint64(c.Hot.MaxBytes), HardBytes: uint64(c.Hot.HardBytes), MinAge: time.Duration(c.Hot.MinAge),
			Target: uint64(c.Seal.TargetBytes), MaxAge: time.Duration(c.Seal.MaxAge),
		},
		Concurrency: c.Seal.Concurrency, SweepInterval: time.Duration(c.Sweep.Interval),
		SealingOff: c.Cold.URL.Kind == config.ColdNone,
	})
	if err != nil {
		return nil, err
	}
	if err := p.openScrub(c, log, registry); err != nil {
		return nil, err
	}
	if makesCopies(c) {
		p.backup, err = backup.New(backup.Options{
			Hot: p.hot, Cold: p.cold, Blobs: p.remoteBlobs, Logger: log, Registerer: registry,
			Interval: time.Duration(c.Backup.Interval), Grace: time.Duration(c.Sweep.Grace),
		})
		if err != nil {
			return nil, err
		}
	}
	if p.subscriptions, err = subscribe.Open(ctx, subscribeOptions(c, p.hot, log, registry)); err != nil {
		return nil, err
	}
	p.apiOptions = apiOptions(c, store, log, registry)
	p.apiOptions.Subscriptions = p.subscriptions
	p.api = api.New(p.apiOptions)
	p.admin = admin.New(admin.Options{
		Store: store, Compactor: p.compactor, Scrub: p.scrub, Backup: p.backup, Gatherer: registry, Token: string(c.Admin.Token), Logger: log,
		ColdTrouble: p.coldTrouble,
		Verify:      verify.RunOptions{InUse: true, State: p.state, Remote: p.remoteBlobs, Local: p.localBlobs},
	})
	return p, nil
}

// openScrub makes the scrubber, and has it told what readers stumble over.
func (p *parts) openScrub(c config.Config, log *slog.Logger, registry *prometheus.Registry) (err error) {
	o := scrub.Options{
		Hot: p.hot, Compactor: p.compactor, Remote: p.remoteBlobs, Local: p.localBlobs,
		Period: time.Duration(c.Scrub.Period), Rate: int64(c.Scrub.Rate), Logger: log, Registerer: registry,
	}
	if o.Period == 0 {
		o.Period = -1
	}
	if p.scrub, err = scrub.New(o); err != nil {
		return err
	}
	for _, s := range []*cold.Store{p.local, p.cold} {
		if s != nil {
			s.OnSuspect(p.scrub.Suspect)
		}
	}
	return nil
}

// makesCopies reports whether the catalog is copied to cold storage. What lies in the
// data directory would be lost with it.
func makesCopies(c config.Config) bool {
	switch c.Cold.URL.Kind {
	case config.ColdNone:
		return false
	case config.ColdFile:
		if within(c.Cold.URL.Path, c.DataDir) {
			return false
		}
	}
	return c.Backup.Interval > 0
}

// within reports whether a path is a directory or below it.
func within(path, dir string) bool {
	p, err := filepath.Abs(path)
	d, err2 := filepath.Abs(dir)
	if err != nil || err2 != nil {
		return false
	}
	rel, err := filepath.Rel(d, p)
	return err == nil && filepath.IsLocal(rel)
}

// errColdWanted: without its cold storage a server would take sealed bytes for lost,
// and what is to be removed there for removed.
var errColdWanted = errors.New("the data directory has cold storage: name it in cold.url, or take another data_dir")

// openCold opens the cold tier. Snapshots need a place even without one: they are
// kept in files, and found there when a cold tier is added later.
func (p *parts) openCold(ctx context.Context, c config.Config, log *slog.Logger, registry *prometheus.Registry) error {
	blobs := filepath.Join(c.DataDir, "blobs")
	none := c.Cold.URL.Kind == config.ColdNone
	if none && p.hot.Fence() > 0 {
		return errColdWanted
	}
	if _, err := os.Stat(blobs); none || err == nil {
		files, err := fs.Open(blobs, fs.Options{})
		if err != nil {
			return err
		}
		p.localBlobs = files
		o := cold.Options{StoreID: p.hot.ID(), Local: true, Logger: log}
		if none {
			o.Registerer = registry
		}
		if p.local, err = cold.Open(files, o); err != nil {
			return err
		}
	}
	if none {
		p.cold, p.local = p.local, nil
		return nil
	}
	remote, err := openBlobs(ctx, c, log, registry)
	if err != nil {
		return fmt.Errorf("open cold storage %s: %w", c.Cold.URL, err)
	}
	p.remoteBlobs, p.coldTrouble = remote, remote.Trouble
	p.cold, err = cold.Open(remote, cold.Options{
		StoreID: p.hot.ID(), CacheBytes: int64(c.Cache.MaxBytes), Logger: log, Registerer: registry,
	})
	if err != nil {
		return err
	}
	claim, cancel := context.WithTimeout(ctx, time.Duration(c.Cold.RequestTimeout))
	defer cancel()
	view := p.hot.View()
	inUse, err := view.HasObject(cold.LocalPrefix)
	view.Close()
	if err != nil {
		return err
	}
	err = p.cold.Claim(claim, cold.ClaimOptions{Fence: p.hot.Fence(), Remember: p.hot.SetFence, InUse: inUse})
	if err != nil && cold.IsUnavailable(err) && p.hot.Fence() > 0 {
		// The data directory has owned this storage before: serve what is hot, and
		// claim it when it is back.
		log.Warn("cold storage is away, starting without it", "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("claim cold storage %s: %w", c.Cold.URL, err)
	}
	return nil
}

// maxIdle is how long a call to the object store may move no byte.
const maxIdle = 20 * time.Second

// openBlobs opens the object store with its wrappers, one concern each. Retries
// are outermost: each attempt waits for its turn and is measured.
func openBlobs(ctx context.Context, c config.Config, log *slog.Logger, registry *prometheus.Registry) (*retry.Store, error) {
	b, err := openStore(ctx, c.Cold, log)
	if err != nil {
		return nil, err
	}
	b = meter.New(b, meter.Options{Registerer: registry})
	b = limit.New(b, limit.Options{Calls: c.Cold.Concurrency})
	return retry.New(b, retry.Options{MaxElapsed: time.Duration(c.Cold.RequestTimeout), Registerer: registry}), nil
}

// openStore opens the bare object store. A folder is opened by its path: as a URL it
// could be neither relative nor hold characters that URLs escape.
func openStore(ctx context.Context, c config.Cold, log *slog.Logger) (blob.Store, error) {
	if c.URL.Kind == config.ColdFile {
		return fs.Open(c.URL.Path, fs.Options{})
	}
	return open.Open(ctx, c.URL.String(), open.Options{
		AccessKey: string(c.AccessKeyID), SecretKey: string(c.SecretAccessKey),
		Unchecked: true, Logger: log, IdleTimeout: min(maxIdle, time.Duration(c.RequestTimeout)),
	})
}

func hotOptions(c config.Config, log *slog.Logger, registry *prometheus.Registry) hot.Options {
	o := hot.Options{
		Logger: log, Registerer: registry,
		CacheBytes: int64(c.Hot.CacheBytes), MemTableBytes: uint64(c.Hot.MemtableBytes),
		SoftBytes: uint64(c.Hot.MaxBytes), HardBytes: uint64(c.Hot.HardBytes),
		MinFreeBytes: uint64(c.Hot.MinFreeBytes), SealTarget: uint64(c.Seal.TargetBytes), Producers: uint64(c.Limits.Producers),
		Grace: time.Duration(c.Sweep.Grace), KeepHistory: time.Duration(c.Snapshot.KeepHistory),
	}
	if c.Snapshot.KeepHistory == config.Forever {
		o.KeepHistory = -1
	}
	if c.Cold.URL.Kind == config.ColdNone {
		// Nothing is ever given up: only the free disk limits.
		o.HardBytes = 0
	}
	return o
}

func apiOptions(c config.Config, store *tier.Store, log *slog.Logger, registry *prometheus.Registry) api.Options {
	return api.Options{
		Store: store, Logger: log, Registerer: registry,
		AppendBytes: int64(c.Limits.AppendBytes), InflightBytes: int64(c.Limits.InflightBytes), OutgoingBytes: int64(c.Read.MemoryBytes),
		SnapshotBytes:   int64(c.Limits.SnapshotBytes),
		LongPollTimeout: time.Duration(c.Live.LongPollTimeout), SSEHeartbeat: time.Duration(c.Live.SSEHeartbeat),
		SSEMaxAge:     time.Duration(c.Live.SSEMaxAge),
		HeaderTimeout: time.Duration(c.HTTP.HeaderTimeout), BodyIdleTimeout: time.Duration(c.HTTP.BodyIdleTimeout),
		WriteStallTimeout: time.Duration(c.HTTP.WriteStallTimeout),
		CORS:              api.CORS{Off: len(c.HTTP.CORSOrigins) == 0, Origins: c.HTTP.CORSOrigins},
		CachePublic:       c.HTTP.CachePublic, TrustedProxies: c.HTTP.TrustedProxies,
		NoCompression: !c.HTTP.Compression,
	}
}

func subscribeOptions(c config.Config, store *hot.Store, log *slog.Logger, registry *prometheus.Registry) subscribe.Options {
	s := c.Subscriptions
	o := subscribe.Options{
		Hot: store, Logger: log, Registerer: registry,
		Requests: s.Concurrency, RequestsPerHost: max(s.Concurrency/8, 1),
		KeyLife: time.Duration(s.KeyMaxAge),
		Webhooks: webhook.Options{
			Timeout: time.Duration(s.WebhookTimeout), Targets: targets(s.Targets), Forbidden: ports(c.Admin.Listen),
		},
	}
	if s.KeyMaxAge == config.Forever {
		o.KeyLife = 0
	}
	return o
}

// targets is where webhooks of a name in the configuration may go.
func targets(name string) webhook.Targets {
	switch name {
	case "localhost":
		return webhook.Localhost
	case "private":
		return webhook.Private
	}
	return webhook.Public
}

// ports is the port of a listener.
func ports(address string) []uint16 {
	a, err := net.ResolveTCPAddr("tcp", address)
	if err != nil || a.Port == 0 {
		return nil
	}
	return []uint16{uint16(a.Port)}
}

// level is the zstd level of a name in the configuration.
func level(name string) int {
	if name == "better" {
		return 7
	}
	return 1
}

// emptyDir makes a directory and removes what a crash left in it.
func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("empty %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	return nil
}

// state is the present state of the hot tier.
func (p *parts) state() (verify.Reader, func()) {
	v := p.hot.View()
	return v.Reader(), v.Close
}

// drain begins the end: readiness fails, live readers get their closing answer.
func (p *parts) drain() {
	p.admin.Drain()
	p.api.Drain()
}

// close closes the tiers, after everything that uses them has ended.
func (p *parts) close() error {
	for _, c := range []*cold.Store{p.local, p.cold} {
		if c != nil {
			c.Close()
		}
	}
	if p.hot == nil {
		return nil
	}
	return p.hot.Close()
}
