package config_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"firn/internal/config"
)

func TestValidate(t *testing.T) {
	if err := config.Default().Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	tests := []struct {
		name string
		edit func(*config.Config)
		want string // path and beginning of the message; empty if valid
	}{
		{"budget holds one segment", func(c *config.Config) { c.Hot.MaxBytes = c.Seal.TargetBytes }, ""},
		{"budget below segment", func(c *config.Config) { c.Hot.MaxBytes = c.Seal.TargetBytes - 1 }, "hot.max_bytes: 8388607 is smaller than seal.target_bytes"},
		{"hard limit at budget", func(c *config.Config) { c.Hot.HardBytes = c.Hot.MaxBytes }, ""},
		{"hard limit below budget", func(c *config.Config) { c.Hot.HardBytes = c.Hot.MaxBytes - 1 }, "hot.hard_bytes: 2147483647 is smaller than hot.max_bytes"},
		{"hard limit of one byte", func(c *config.Config) { c.Hot.HardBytes = 1 }, "hot.hard_bytes: 1 is smaller than"},
		{"least of a size", func(c *config.Config) { c.Cache.MaxBytes = config.MiB }, ""},
		{"below least of a size", func(c *config.Config) { c.Cache.MaxBytes = config.MiB - 1 }, "cache.max_bytes: 1048575 is less than"},
		{"most of a size", func(c *config.Config) { c.Bootstrap.MaxBytes = 8 * config.MiB }, ""},
		{"above most of a size", func(c *config.Config) { c.Bootstrap.MaxBytes = 8*config.MiB + 1 }, "bootstrap.max_bytes: 8388609 is more than"},
		{"negative size", func(c *config.Config) { c.Hot.MinFreeBytes = -1 }, "hot.min_free_bytes: -1 is less than"},
		{"no reserve", func(c *config.Config) { c.Hot.MinFreeBytes = 0 }, ""},
		{"negative duration", func(c *config.Config) { c.Hot.MinAge = -1 }, "hot.min_age: -1ns is less than"},
		{"forever", func(c *config.Config) { c.Snapshot.KeepHistory = config.Forever }, ""},
		{"forever elsewhere", func(c *config.Config) { c.Sweep.Grace = config.Forever }, "sweep.grace: forever is not possible"},
		{"least of a number", func(c *config.Config) { c.Seal.Concurrency = 1 }, ""},
		{"below least of a number", func(c *config.Config) { c.Seal.Concurrency = 0 }, "seal.concurrency: 0 is less than"},
		{"enum", func(c *config.Config) { c.Seal.Compression = "best" }, "seal.compression: \"best\" is not one of fast, better"},
		{"log level between", func(c *config.Config) { c.Log.Level = 1 }, "log.level: \"info+1\" is not one of"},
		{"bootstrap memory holds one", func(c *config.Config) { c.Bootstrap.MemoryBytes = c.Bootstrap.MaxBytes }, ""},
		{"bootstrap memory too small", func(c *config.Config) { c.Bootstrap.MemoryBytes = c.Bootstrap.MaxBytes - 1 }, "bootstrap.memory_bytes: 8388607 is smaller than bootstrap.max_bytes"},
		{"answers hold a page", func(c *config.Config) { c.Read.MemoryBytes = c.Read.MaxBytes }, ""},
		{"answers too small", func(c *config.Config) { c.Read.MemoryBytes = c.Read.MaxBytes - 1 }, "read.memory_bytes: 4194303 is smaller than read.max_bytes"},
		{"bodies hold one append", func(c *config.Config) { c.Limits.InflightBytes = c.Limits.AppendBytes }, ""},
		{"bodies too small", func(c *config.Config) { c.Limits.InflightBytes = c.Limits.AppendBytes - 1 }, "limits.inflight_bytes: 16777215 is smaller than limits.append_bytes"},
		{"heartbeat at end", func(c *config.Config) { c.Live.SSEHeartbeat = c.Live.SSEMaxAge }, ""},
		{"heartbeat after end", func(c *config.Config) { c.Live.SSEHeartbeat = c.Live.SSEMaxAge + 1 }, "live.sse_heartbeat: 1m0.000000001s is longer than live.sse_max_age"},
		{"no port", func(c *config.Config) { c.Listen = "127.0.0.1" }, "listen: \"127.0.0.1\" is not of the form host:port"},
		{"largest port", func(c *config.Config) { c.Listen = ":65535" }, ""},
		{"port too large", func(c *config.Config) { c.Listen = ":65536" }, "listen: \":65536\" has no port between"},
		{"one address twice", func(c *config.Config) { c.Admin.Listen = c.Listen }, "admin.listen: is the same address as listen"},
		{"any free port twice", func(c *config.Config) { c.Listen, c.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0" }, ""},
		{"open admin, IPv6 loopback", func(c *config.Config) { c.Admin.Listen = "[::1]:1" }, ""},
		{"open admin, localhost", func(c *config.Config) { c.Admin.Listen = "localhost:1" }, ""},
		{"open admin, all interfaces", func(c *config.Config) { c.Admin.Listen = ":1" }, "admin.listen: :1 can be reached by other machines and there is no admin.token"},
		{"open admin, address", func(c *config.Config) { c.Admin.Listen = "10.0.0.1:1" }, "admin.listen: 10.0.0.1:1 can be reached"},
		{"open admin, name", func(c *config.Config) { c.Admin.Listen = "admin.example:1" }, "admin.listen: admin.example:1 can be reached"},
		{"admin with token", func(c *config.Config) { c.Admin.Listen, c.Admin.Token = ":1", "t" }, ""},
		{"token with space", func(c *config.Config) { c.Admin.Token = "a b" }, "admin.token: holds white space"},
		{"token with line end", func(c *config.Config) { c.Admin.Token = "a\n" }, "admin.token: holds white space"},
		{"no data directory", func(c *config.Config) { c.DataDir = "" }, "data_dir: is empty"},
		{"certificate without key", func(c *config.Config) { c.TLS.CertFile = "a" }, "tls.key_file: is not set"},
		{"key without certificate", func(c *config.Config) { c.TLS.KeyFile = "a" }, "tls.cert_file: is not set"},
		{"certificate and key", func(c *config.Config) { c.TLS.CertFile, c.TLS.KeyFile = "a", "b" }, ""},
		{"access key alone", func(c *config.Config) { c.Cold.AccessKeyID = "a" }, "cold.secret_access_key: is not set"},
		{"secret key alone", func(c *config.Config) { c.Cold.SecretAccessKey = "a" }, "cold.access_key_id: is not set"},
		{"cold in hot", func(c *config.Config) { c.Cold.URL = config.ColdURL{Kind: config.ColdFile, Path: "firn-data/hot/x"} }, "cold.url: firn-data/hot/x is inside"},
		{"cold is hot", func(c *config.Config) { c.Cold.URL = config.ColdURL{Kind: config.ColdFile, Path: "firn-data/hot"} }, "cold.url: firn-data/hot is inside"},
		{"cold around hot", func(c *config.Config) { c.Cold.URL = config.ColdURL{Kind: config.ColdFile, Path: "firn-data"} }, ""},
		{"cold beside hot", func(c *config.Config) { c.Cold.URL = config.ColdURL{Kind: config.ColdFile, Path: "firn-data/hotter"} }, ""},
		{"origins", func(c *config.Config) { c.HTTP.CORSOrigins = []string{"https://a.example", "http://localhost:3000"} }, ""},
		{"star and origin", func(c *config.Config) { c.HTTP.CORSOrigins = []string{"*", "https://a.example"} }, "http.cors_origins: holds * beside"},
		{"origin with path", func(c *config.Config) { c.HTTP.CORSOrigins = []string{"https://a.example/"} }, "http.cors_origins: \"https://a.example/\" is not an origin"},
		{"origin without scheme", func(c *config.Config) { c.HTTP.CORSOrigins = []string{"a.example"} }, "http.cors_origins: \"a.example\" is not an origin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := config.Default()
			tt.edit(&c)
			err := c.Validate()
			if tt.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if !errors.Is(err, config.ErrInvalid) {
				t.Fatalf("got error %v, want an ErrInvalid", err)
			}
			if got := strings.TrimPrefix(err.Error(), "invalid configuration: "); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s…", got, tt.want)
			}
		})
	}
}

func TestValidateCollects(t *testing.T) {
	c := config.Default()
	c.DataDir, c.Listen, c.Seal.Concurrency = "", "x", 0
	var problems config.Problems
	if !errors.As(c.Validate(), &problems) {
		t.Fatal("not refused with Problems")
	}
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Paths[0])
	}
	if want := []string{"seal.concurrency", "listen", "data_dir"}; !slices.Equal(paths, want) {
		t.Errorf("problems of %v, want %v", paths, want)
	}
}

func TestWebhookTargetsFollowTheListener(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:4437": "localhost", "localhost:1": "localhost", "[::1]:1": "localhost",
		":4437": "public", "0.0.0.0:4437": "public", "192.168.1.1:4437": "public", "firn.example:1": "public",
	} {
		c := config.Default()
		c.Listen = listen
		if got := c.Resolved().Subscriptions.Targets; got != want {
			t.Errorf("%s: webhooks go to %s, want %s", listen, got, want)
		}
		c.Subscriptions.Targets = "private"
		if got := c.Resolved().Subscriptions.Targets; got != "private" {
			t.Errorf("%s: webhooks go to %s, want private", listen, got)
		}
	}
}
