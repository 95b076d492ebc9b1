package config

import (
	_ "embed" // this file is the manual, see manual.go
	"log/slog"
	"net/netip"
)

// Config is the configuration of a server. Its comments are written for the
// operator: they are printed by `firn config` and make up docs/configuration.md.
//
// The tags of a setting: key names it; default is its value when nothing sets it;
// min and max bound it, both included; enum lists its values; alias is another path
// for it; forever allows the duration of that name; arg stands for the value in
// the help of its flag.
type Config struct {
	// Address that clients connect to, host:port. Without a host (`:4437`) it is
	// every interface of the machine. The protocol has no access control of its
	// own: put a proxy in front where not every client may read and write
	// everything.
	Listen string `key:"listen" default:"127.0.0.1:4437" arg:"ADDR"`
	// Directory of the hot tier (in `hot`) and, unless `cold.url` says otherwise,
	// of the cold one (in `cold`). One server at a time. It holds appends that are
	// in no other place yet: keep it on a disk that survives the machine's end.
	DataDir string `key:"data_dir" default:"./firn-data" arg:"DIR"`

	// Where sealed segments and snapshots go.
	Cold Cold `key:"cold"`
	// The operator's listener: metrics, health, admin calls.
	Admin Admin `key:"admin"`
	// The clients' listener.
	HTTP HTTP `key:"http"`
	// Encryption of the clients' listener. Off unless both files are named.
	TLS TLS `key:"tls"`
	// The local store that takes all appends. How much it keeps decides how many
	// reads and bootstraps never touch the cold tier.
	Hot Hot `key:"hot"`
	// When appended bytes are written to the cold tier.
	Seal Seal `key:"seal"`
	// Answers to reads.
	Read Read `key:"read"`
	// Answers to bootstraps: a snapshot and the updates after it in one response.
	Bootstrap Bootstrap `key:"bootstrap"`
	// Memory for what was read from the cold tier.
	Cache Cache `key:"cache"`
	// Removal of objects that nothing needs any more.
	Sweep Sweep `key:"sweep"`
	// Reading of what is in the bucket, again and again, to find damage before a
	// reader does.
	Scrub Scrub `key:"scrub"`
	// Copies of the catalog in the bucket, from which `firn rebuild` makes a lost data
	// directory.
	Backup Backup `key:"backup"`
	// Snapshots and the history that they replace.
	Snapshot Snapshot `key:"snapshot"`
	// What one request, and all of them together, may take.
	Limits Limits `key:"limits"`
	// Reads that wait for new data.
	Live Live `key:"live"`
	// Workers that are woken when streams grow.
	Subscriptions Subscriptions `key:"subscriptions"`
	// The end of the server.
	Shutdown Shutdown `key:"shutdown"`
	// The server's log, on standard error.
	Log Log `key:"log"`
}

// Cold configures the bucket behind the cold tier.
type Cold struct {
	// The bucket, `file://DIRECTORY` or `s3://BUCKET/PREFIX`, or `none`. Empty is
	// `file://{data_dir}/cold`. Directories are written `file:///srv/archive` or,
	// relative to where the server is started, `file://./archive`. With `s3` go
	// the parameters `region`, `endpoint` (the http or https URL of a store that is
	// not AWS) and `path_style=true`, as in
	// `s3://archive/firn?endpoint=http://minio:9000&path_style=true`.
	// With `none` nothing is sealed: all streams have to fit into the hot tier.
	// In the file the URL may also stand alone: `cold: none`.
	URL ColdURL `key:"url" alias:"cold" arg:"URL"`
	// Calls to the bucket under way at a time.
	Concurrency int `key:"concurrency" default:"16" min:"1" max:"1024"`
	// A call to the bucket that takes longer is given up, and tried again where
	// that is safe.
	RequestTimeout Duration `key:"request_timeout" default:"30s" min:"100ms" max:"10m"`
	// Access key of the bucket. Without it the usual places of the AWS tools are
	// asked: environment, shared files, the machine's role.
	AccessKeyID Secret `key:"access_key_id"`
	// Secret that belongs to `cold.access_key_id`.
	SecretAccessKey Secret `key:"secret_access_key"`
}

// Admin configures the operator's listener.
type Admin struct {
	// Address of the operator's listener, host:port. On an address that other
	// machines can reach it needs `admin.token`.
	Listen string `key:"listen" default:"127.0.0.1:4438" alias:"admin_listen" arg:"ADDR"`
	// What callers of the operator's listener send as `Authorization: Bearer`.
	// Without one, everybody who reaches the address may do everything there.
	Token Secret `key:"token"`
}

// HTTP configures the clients' listener.
type HTTP struct {
	// Networks of the proxies in front, as CIDRs. `X-Forwarded-Proto` and
	// `X-Forwarded-Host` are honoured from these and ignored from all others. Of a
	// list the last element counts: what stands before it may be the client's.
	TrustedProxies []netip.Prefix `key:"trusted_proxies" arg:"CIDR,..."`
	// Origins whose pages may use the server, as `https://app.example`, or `*`
	// for all. An empty list turns CORS off. Credentials are never allowed.
	CORSOrigins []string `key:"cors_origins" default:"*" arg:"ORIGIN,..."`
	// Let shared caches keep what was read: `Cache-Control: public` in place of
	// `private`. Only where every client may read every stream.
	CachePublic bool `key:"cache_public" default:"false"`
	// Compress answers (gzip or zstd) for clients that accept it. Whoever can both
	// append to a stream and watch the size of what another reads of it could guess
	// secrets that are there: then turn it off.
	Compression bool `key:"compression" default:"true"`
	// A request whose header takes longer is cut.
	HeaderTimeout Duration `key:"header_timeout" default:"10s" min:"100ms" max:"10m"`
	// A request body that gives no byte for that long is cut, and so is one that
	// dribbles: after this time it has to have given 1 KiB a second on average.
	BodyIdleTimeout Duration `key:"body_idle_timeout" default:"30s" min:"100ms" max:"1h"`
	// A response that its client takes no byte of for that long is cut.
	WriteStallTimeout Duration `key:"write_stall_timeout" default:"60s" min:"100ms" max:"1h"`
}

// TLS configures encryption of the clients' listener.
type TLS struct {
	// Certificate chain, PEM.
	CertFile string `key:"cert_file" arg:"FILE"`
	// Private key of the certificate, PEM.
	KeyFile string `key:"key_file" arg:"FILE"`
}

// Hot configures the hot tier.
type Hot struct {
	// The budget: bytes of stream data kept in the hot tier. Above it, sealed
	// ranges lose their hot copy, oldest first. More budget is more disk, and
	// fewer reads from the cold tier.
	MaxBytes Bytes `key:"max_bytes" default:"2GiB" min:"64KiB" max:"1PiB"`
	// Above this many bytes appends are refused with 503 until sealing has caught
	// up. 0 is twice `hot.max_bytes`.
	HardBytes Bytes `key:"hard_bytes" default:"0" min:"0" max:"1PiB"`
	// Sealed data younger than this keeps its hot copy where the budget allows.
	MinAge Duration `key:"min_age" default:"0s" min:"0s" max:"3650d"`
	// Free space that stays on the disk of the data directory: below it appends
	// are refused with 503. A store that fills its disk can no longer free
	// anything. 0 turns the check off.
	MinFreeBytes Bytes `key:"min_free_bytes" default:"512MiB" min:"0" max:"1PiB"`
	// Memory for blocks read from the hot tier.
	CacheBytes Bytes `key:"cache_bytes" default:"64MiB" min:"1MiB" max:"1TiB"`
	// Size of a memtable. Up to four are in memory at a time, and about five
	// times this is on disk as write-ahead logs, beside the budget.
	MemtableBytes Bytes `key:"memtable_bytes" default:"64MiB" min:"1MiB" max:"1GiB"`
}

// Seal configures the writing of segments.
type Seal struct {
	// Size of a segment before compression. A stream with that many unsealed
	// bytes is sealed at once.
	TargetBytes Bytes `key:"target_bytes" default:"8MiB" min:"1KiB" max:"1GiB"`
	// Bytes are sealed after this time even if there are few of them. It is about
	// how much the loss of the data directory costs.
	MaxAge Duration `key:"max_age" default:"10m" min:"1s" max:"365d"`
	// Segments written at a time. Each takes memory of about `seal.target_bytes`.
	Concurrency int `key:"concurrency" default:"2" min:"1" max:"64"`
	// How hard segments are compressed: `fast` takes less of the processor,
	// `better` less of the bucket.
	Compression string `key:"compression" default:"fast" enum:"fast,better"`
}

// Read configures answers to reads.
type Read struct {
	// Bytes of one answer; the client asks for the rest. A single larger JSON
	// message is returned whole.
	MaxBytes Bytes `key:"max_bytes" default:"4MiB" min:"1KiB" max:"64MiB"`
	// Memory for answers above 64 KiB that clients have not taken yet, all together.
	// Further ones wait a few seconds, then they are refused with 503.
	MemoryBytes Bytes `key:"memory_bytes" default:"512MiB" min:"1KiB" max:"1TiB"`
}

// Bootstrap configures answers to bootstraps.
type Bootstrap struct {
	// Bytes of updates in one answer, beside the snapshot.
	MaxBytes Bytes `key:"max_bytes" default:"8MiB" min:"1KiB" max:"8MiB"`
	// Memory for the updates of all bootstraps under way. Further ones wait.
	MemoryBytes Bytes `key:"memory_bytes" default:"128MiB" min:"1KiB" max:"1TiB"`
}

// Cache configures the memory for cold reads.
type Cache struct {
	// Memory for decoded parts of segments, so that many readers of the same
	// history fetch it once.
	MaxBytes Bytes `key:"max_bytes" default:"256MiB" min:"1MiB" max:"1TiB"`
}

// Sweep configures the removal of objects.
type Sweep struct {
	// An object is removed this long after the last thing that needed it went:
	// longer than any read takes, and long enough to notice a mistake.
	Grace Duration `key:"grace" default:"1h" min:"1s" max:"365d"`
	// Time between two looks for objects to remove.
	Interval Duration `key:"interval" default:"1m" min:"100ms" max:"1d"`
}

// Scrub configures the reading of all objects.
type Scrub struct {
	// Every object of segments and every snapshot is read and checked once in this
	// time, evenly spread over nine tenths of it. What is missing or damaged is told by
	// metric, log and `/readyz`, and written again from the hot copy where there is one.
	// It costs a GET for each object and each further 8 MiB of it, and the bytes: with
	// `30d` an archive of 1 TiB in objects of 3 MiB is 350,000 GETs (0.14 USD at S3's
	// list price) and 1 TiB read a month, 0.4 MiB a second. Within a region S3 does not
	// charge for the bytes; where the store does, a longer period costs less. `0s`
	// leaves it: then only what readers stumble over is looked at.
	Period Duration `key:"period" default:"30d" min:"0s" max:"3650d"`
	// Bytes a second that are read for it at most. It goes before the period.
	Rate Bytes `key:"rate" default:"16MiB" min:"1KiB" max:"1TiB"`
}

// Backup configures copies of the catalog.
type Backup struct {
	// Time between two copies of what has changed in the catalog, with the bytes that
	// are not sealed yet: about how much is lost with the data directory. Each costs
	// one or a few PUTs; where nothing has changed none is made. At `1m` and with
	// appends all the time these are 48,000 PUTs and 48,000 GETs a month, with those
	// of the owner record (0.26 USD at S3's list price). `0s` makes none, as does cold
	// storage in the data directory, which would be lost with it.
	Interval Duration `key:"interval" default:"1m" min:"0s" max:"1d"`
}

// Snapshot configures snapshots.
type Snapshot struct {
	// How long the history before a snapshot stays in the bucket, unreadable to
	// clients, so that a bad snapshot does not destroy an archive. `forever` keeps
	// it.
	KeepHistory Duration `key:"keep_history" default:"7d" min:"0s" max:"36500d" forever:"true"`
}

// Limits configures what requests may take.
type Limits struct {
	// Size of an append's body. Larger ones are refused with 413.
	AppendBytes Bytes `key:"append_bytes" default:"16MiB" min:"1KiB" max:"63MiB"`
	// Memory for the bodies of all requests under way. Above it requests are
	// refused with 503.
	InflightBytes Bytes `key:"inflight_bytes" default:"256MiB" min:"1KiB" max:"1TiB"`
	// Size of a snapshot. Larger ones are refused with 413.
	SnapshotBytes Bytes `key:"snapshot_bytes" default:"128MiB" min:"1KiB" max:"4GiB"`
	// Idempotent producers that one stream remembers. Further ones are refused
	// with 429; none is forgotten.
	Producers int `key:"producers" default:"10000" min:"1" max:"10000000"`
}

// Live configures reads that wait.
type Live struct {
	// A long-poll that saw nothing new is answered after this time.
	LongPollTimeout Duration `key:"long_poll_timeout" default:"25s" min:"100ms" max:"10m"`
	// An event stream without events carries a comment this often, so that
	// proxies do not take it for dead.
	SSEHeartbeat Duration `key:"sse_heartbeat" default:"15s" min:"100ms" max:"10m"`
	// An event stream ends after about this time, and its client comes back: that
	// is how load balances and caches get their turn.
	SSEMaxAge Duration `key:"sse_max_age" default:"60s" min:"1s" max:"1d"`
}

// Subscriptions configures webhooks and the keys that they are signed with.
type Subscriptions struct {
	// Where webhooks may go: `public` is https to addresses of the internet;
	// `localhost` also http to `localhost` and `127.0.0.x`; `private` also http,
	// and private networks. `auto` is `localhost` where `listen` is reached from
	// this machine alone, else `public`. What a name resolves to counts, at each
	// connection. Never allowed: the operator's listener and link-local addresses.
	Targets string `key:"targets" default:"auto" enum:"auto,public,localhost,private"`
	// A webhook that is not answered in that time has failed, and one whose lease
	// is over.
	WebhookTimeout Duration `key:"webhook_timeout" default:"30s" min:"100ms" max:"10m"`
	// Webhooks under way at a time; at most an eighth of them to one host.
	Concurrency int `key:"concurrency" default:"64" min:"1" max:"4096"`
	// Age at which the signing key is replaced. The old one stays published for
	// another day.
	KeyMaxAge Duration `key:"key_max_age" default:"90d" min:"1h" max:"36500d" forever:"true"`
}

// Shutdown configures the end of the server.
type Shutdown struct {
	// Time for the requests under way when the server is told to stop. Then they
	// are cut.
	Grace Duration `key:"grace" default:"20s" min:"0s" max:"1h"`
}

// Log configures the server's log.
type Log struct {
	// The least grave messages that are written.
	Level slog.Level `key:"level" default:"info" enum:"debug,info,warn,error"`
	// `text` for people, `json` for machines.
	Format string `key:"format" default:"text" enum:"text,json"`
}

//go:embed config.go
var source string
