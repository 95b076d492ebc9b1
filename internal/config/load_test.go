package config_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"firn/internal/config"
)

// files is a file system of a few texts.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

// load reads a YAML text as firn.yaml, beside the other sources.
func load(yaml string, environ []string, flags map[string]string) (config.Config, config.Origins, error) {
	return config.Load(config.Sources{
		File:     "firn.yaml",
		Environ:  environ,
		Flags:    flags,
		ReadFile: files{"firn.yaml": yaml, "/run/token": "from-a-file\n", "/run/empty": "\n"}.read,
	})
}

func TestLoadPrecedence(t *testing.T) {
	const yaml = "hot:\n  max_bytes: 3GiB\n"
	env := []string{"FIRN_HOT_MAX_BYTES=4GiB", "HOME=/root"}
	flags := map[string]string{"hot.max_bytes": "5GiB"}
	tests := []struct {
		name   string
		yaml   string
		env    []string
		flags  map[string]string
		want   config.Bytes
		origin string
	}{
		{"default", "", nil, nil, 2 * config.GiB, "default"},
		{"file", yaml, nil, nil, 3 * config.GiB, "firn.yaml:2"},
		{"environment over file", yaml, env, nil, 4 * config.GiB, "FIRN_HOT_MAX_BYTES"},
		{"flag over environment", yaml, env, flags, 5 * config.GiB, "--hot.max-bytes"},
		{"flag over file", yaml, nil, flags, 5 * config.GiB, "--hot.max-bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, origins, err := load(tt.yaml, tt.env, tt.flags)
			if err != nil {
				t.Fatal(err)
			}
			if c.Hot.MaxBytes != tt.want || origins.Of("hot.max_bytes") != tt.origin {
				t.Errorf("got %v from %s, want %v from %s", c.Hot.MaxBytes, origins.Of("hot.max_bytes"), tt.want, tt.origin)
			}
			if c.Hot.HardBytes != 2*tt.want {
				t.Errorf("hard_bytes is %v, want twice the budget", c.Hot.HardBytes)
			}
		})
	}
}

func TestLoadDefaults(t *testing.T) {
	c, origins, err := config.Load(config.Sources{})
	if err != nil {
		t.Fatal(err)
	}
	if len(origins) != 0 {
		t.Errorf("origins %v, want none", origins)
	}
	if !reflect.DeepEqual(c, config.Default().Resolved()) {
		t.Errorf("got %+v, want the defaults", c)
	}
	if got, want := c.Cold.URL.String(), "file://./firn-data/cold"; got != want {
		t.Errorf("cold.url is %s, want %s", got, want)
	}
	// One of each type.
	if c.Listen != "127.0.0.1:4437" || c.Admin.Listen != "127.0.0.1:4438" || c.HTTP.CachePublic || c.Cold.Concurrency != 16 ||
		c.Snapshot.KeepHistory != config.Week || c.Log.Level != slog.LevelInfo || !reflect.DeepEqual(c.HTTP.CORSOrigins, []string{"*"}) {
		t.Errorf("unexpected defaults: %+v", c)
	}
}

func TestLoadTypes(t *testing.T) {
	c, _, err := load(`
listen: ":0"
cold: none
http:
  trusted_proxies: [10.0.0.0/8, "fd00::/8"]
  cors_origins: []
  cache_public: true
hot:
  # All of it commented out would be fine too.
  max_bytes: 1_000_000_000
seal:
snapshot: {keep_history: forever}
live: {sse_max_age: 1d}
limits: {producers: 7}
log: {level: warn}
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Listen = ":0"
	want.Cold.URL.Kind = config.ColdNone
	want.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	want.HTTP.CORSOrigins = nil
	want.HTTP.CachePublic = true
	want.Hot.MaxBytes = 1_000_000_000
	want.Snapshot.KeepHistory = config.Forever
	want.Live.SSEMaxAge = config.Duration(24 * time.Hour)
	want.Limits.Producers = 7
	want.Log.Level = slog.LevelWarn
	if want = want.Resolved(); !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestLoadEnvironment(t *testing.T) {
	c, origins, err := config.Load(config.Sources{
		Environ: []string{
			"FIRN_CONFIG=other.yaml",
			"FIRN_COLD=s3://b",
			"FIRN_ADMIN_TOKEN_FILE=/run/token",
			"FIRN_HTTP_TRUSTED_PROXIES=10.0.0.0/8, 192.168.0.0/16",
			"FIRN_HTTP_CORS_ORIGINS=",
			// What Kubernetes adds for a service of the name firn.
			"FIRN_PORT=tcp://10.1.2.3:4437", "FIRN_PORT_4437_TCP_ADDR=10.1.2.3", "FIRN_SERVICE_HOST=10.1.2.3",
			// What the commands beside serve go by.
			"FIRN_URL=http://firn:4437", "FIRN_ADMIN_URL=http://firn:4438",
		},
		ReadFile: files{"other.yaml": "log: {format: json}", "/run/token": "t0ken\r\n"}.read,
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Log.Format != "json" || c.Cold.URL.Bucket != "b" || string(c.Admin.Token) != "t0ken" ||
		len(c.HTTP.TrustedProxies) != 2 || len(c.HTTP.CORSOrigins) != 0 {
		t.Errorf("got %+v", c)
	}
	for path, want := range map[string]string{
		"log.format": "other.yaml:1", "cold.url": "FIRN_COLD", "admin.token": "FIRN_ADMIN_TOKEN_FILE", "listen": "default",
	} {
		if got := origins.Of(path); got != want {
			t.Errorf("%s is from %s, want %s", path, got, want)
		}
	}
}

func TestLoadFileGoesBeforeVariable(t *testing.T) {
	_, origins, err := load("listen: :0", []string{"FIRN_CONFIG=other.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := origins.Of("listen"); got != "firn.yaml:1" {
		t.Errorf("listen is from %s", got)
	}
}

func TestLoadSecretLaterSourceWins(t *testing.T) {
	c, _, err := load("admin: {token: from-yaml}", []string{"FIRN_ADMIN_TOKEN_FILE=/run/token"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.Admin.Token); got != "from-a-file" {
		t.Errorf("token is %q, want that of the file", got)
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct {
		name  string
		yaml  string
		env   []string
		flags map[string]string
		want  string // the whole message
	}{
		{name: "unknown key", yaml: "listen: :0\nhot:\n  max_byte: 1GiB\n",
			want: "firn.yaml:3: unknown key hot.max_byte; did you mean hot.max_bytes?"},
		{name: "unknown section", yaml: "snapshots:\n  keep_history: 1d\n",
			want: "firn.yaml:1: unknown key snapshots; did you mean snapshot?"},
		{name: "key of another section", yaml: "hot: {target_bytes: 1MiB}",
			want: "firn.yaml:1: unknown key hot.target_bytes; did you mean seal.target_bytes?"},
		{name: "unknown key, nothing near", yaml: "frobnicate: 1",
			want: "firn.yaml:1: unknown key frobnicate"},
		{name: "path in place of a section", yaml: "hot.max_bytes: 1GiB",
			want: "firn.yaml:1: unknown key hot.max_bytes: write it as max_bytes: in a section hot:"},
		{name: "key twice", yaml: "listen: :0\nlisten: :1\n",
			want: `firn.yaml:2: mapping key "listen" already defined at [1:1]`},
		{name: "setting twice", yaml: "admin_listen: 127.0.0.1:1\nadmin:\n  listen: 127.0.0.1:2\n",
			want: "firn.yaml:3: admin.listen: is set by firn.yaml:1 already: remove one of them"},
		{name: "secret twice", env: []string{"FIRN_ADMIN_TOKEN=a", "FIRN_ADMIN_TOKEN_FILE=/run/token"},
			want: "FIRN_ADMIN_TOKEN_FILE: admin.token: is set by FIRN_ADMIN_TOKEN already: remove one of them"},
		{name: "syntax", yaml: "listen: [",
			want: "firn.yaml:1: sequence end token ']' not found"},
		{name: "no mapping", yaml: "- listen",
			want: "firn.yaml:1: this is not a list of settings: write lines like listen: 127.0.0.1:4437"},
		{name: "two documents", yaml: "listen: :0\n---\nlisten: :1\n",
			want: "firn.yaml:3: a second document begins here: put all settings into one"},
		{name: "section as value", yaml: "hot: 2GiB",
			want: "firn.yaml:1: hot: is a section: write its settings below it, each on a line of its own"},
		{name: "no value", yaml: "listen:\n",
			want: "firn.yaml:1: listen: has no value: write one, or remove the line for the default"},
		{name: "mapping as value", yaml: "listen: {a: b}",
			want: "firn.yaml:1: listen: takes a single value"},
		{name: "anchor", yaml: "listen: &a :0",
			want: "firn.yaml:1: listen: is written with an anchor, an alias or a tag: write the value itself"},
		{name: "scalar as list", yaml: "http: {trusted_proxies: 10.0.0.0/8}",
			want: "firn.yaml:1: http.trusted_proxies: is a list: write it as [a, b], or [] for none"},
		{name: "no unit of time", yaml: "seal:\n  max_age: 600\n",
			want: `firn.yaml:2: seal.max_age: "600" has no unit: write 600s for seconds, 600m for minutes, 600h for hours or 600d for days`},
		{name: "no unit of size", yaml: "hot:\n  max_bytes: 64\n",
			want: "firn.yaml:2: hot.max_bytes: 64 is less than the smallest value, 64KiB: without a unit it is bytes; write 64MiB or 64GiB"},
		{name: "negative size", yaml: "cache: {max_bytes: -1}",
			want: `firn.yaml:1: cache.max_bytes: "-1" is negative, a size is not`},
		{name: "zero", yaml: "cache: {max_bytes: 0}",
			want: "firn.yaml:1: cache.max_bytes: 0 is less than the smallest value, 1MiB"},
		{name: "bool", yaml: "http: {cache_public: yes}",
			want: `firn.yaml:1: http.cache_public: "yes" is neither true nor false`},
		{name: "enum", env: []string{"FIRN_LOG_LEVEL=warning"},
			want: `FIRN_LOG_LEVEL: log.level: "warning" is not one of debug, info, warn, error`},
		{name: "enum, near", env: []string{"FIRN_LOG_FORMAT=jsno"},
			want: `FIRN_LOG_FORMAT: log.format: "jsno" is not one of text, json; did you mean json?`},
		{name: "address for network", flags: map[string]string{"http.trusted_proxies": "10.0.0.1"},
			want: `--http.trusted-proxies: http.trusted_proxies: "10.0.0.1" is an address, not a network: write 10.0.0.1/32 for this one`},
		{name: "unknown variable", env: []string{"FIRN_HOT_MAXBYTES=1"},
			want: "FIRN_HOT_MAXBYTES: there is no such setting; did you mean FIRN_HOT_MAX_BYTES?"},
		{name: "unknown flag", flags: map[string]string{"hot.max": "1"},
			want: "--hot.max: there is no such setting; did you mean hot.max_bytes?"},
		{name: "file of secret missing", yaml: "admin: {token_file: /nowhere}",
			want: "firn.yaml:1: admin.token: read the secret: open /nowhere: file does not exist"},
		{name: "file of secret empty", yaml: "admin: {token_file: /run/empty}",
			want: "firn.yaml:1: admin.token: the file /run/empty is empty: write the secret into it"},
		{name: "conflict, with origin", yaml: "seal:\n  target_bytes: 1GiB\nhot:\n  max_bytes: 512MiB\n",
			want: "firn.yaml:4: hot.max_bytes: 512MiB is smaller than seal.target_bytes (1GiB): the budget has to hold a segment; raise the one or lower the other"},
		{name: "no conflict with what could not be read", yaml: "hot:\n  max_bytes: 9XiB\n  hard_bytes: 1GiB\n", // the default would be above it
			want: `firn.yaml:2: hot.max_bytes: "9XiB" has no unit of size: use KiB, MiB, GiB or TiB`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := load(tt.yaml, tt.env, tt.flags)
			if !errors.Is(err, config.ErrInvalid) {
				t.Fatalf("got error %v, want an ErrInvalid", err)
			}
			if got := strings.TrimPrefix(err.Error(), "invalid configuration: "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLoadReportsAllProblems(t *testing.T) {
	_, _, err := load("lisen: :0\nseal: {max_age: 10}\n", []string{"FIRN_READ_MAX_BYTES=1B"}, map[string]string{"log.format": "xml"})
	const want = `invalid configuration, 4 problems:
  firn.yaml:1: unknown key lisen; did you mean listen?
  firn.yaml:2: seal.max_age: "10" has no unit: write 10s for seconds, 10m for minutes, 10h for hours or 10d for days
  --log.format: log.format: "xml" is not one of text, json
  FIRN_READ_MAX_BYTES: read.max_bytes: 1 is less than the smallest value, 1KiB: without a unit it is bytes; write 1MiB or 1GiB`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) != 4 {
		t.Errorf("the error holds %v, want four problems", problems)
	}
}

func TestLoadMissingFile(t *testing.T) {
	_, _, err := config.Load(config.Sources{File: "nowhere.yaml", ReadFile: files{}.read})
	if err == nil || !strings.Contains(err.Error(), "read the configuration file: open nowhere.yaml") {
		t.Errorf("got %v", err)
	}
}

func TestLoadExample(t *testing.T) {
	const dir = "../../deploy/"
	c, _, err := config.Load(config.Sources{
		File: dir + "firn.yaml",
		ReadFile: func(name string) ([]byte, error) {
			if strings.HasPrefix(name, "/run/secrets/") {
				return []byte("secret\n"), nil
			}
			return os.ReadFile(name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := config.ColdURL{Kind: config.ColdS3, Bucket: "archive", Prefix: "firn", Region: "us-east-1", Endpoint: "http://minio:9000", PathStyle: true}
	if c.Cold.URL != want {
		t.Errorf("cold.url is %+v, want %+v", c.Cold.URL, want)
	}
	if c.Admin.Token == "" || c.Hot.MaxBytes != 50*config.GiB {
		t.Errorf("got %+v", c)
	}
}
