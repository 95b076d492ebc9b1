package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"firn/internal/config"
)

func TestBytes(t *testing.T) {
	tests := []struct {
		in    string
		want  config.Bytes
		print string
	}{
		{"0", 0, "0"},
		{"1", 1, "1"},
		{"1023", 1023, "1023"},
		{"1024", config.KiB, "1KiB"},
		{"64MiB", 64 * config.MiB, "64MiB"},
		{"64 mib", 64 * config.MiB, "64MiB"},
		{"1536MiB", 1536 * config.MiB, "1536MiB"},
		{"2GiB", 2 * config.GiB, "2GiB"},
		{"2048MiB", 2 * config.GiB, "2GiB"},
		{"1_000_000", 1_000_000, "1000000"},
		{"5GB", 5_000_000_000, "5000000000"},
		{"1kB", 1000, "1000"},
		{"7B", 7, "7"},
		{"3TiB", 3 * config.TiB, "3TiB"},
		{"8191PiB", 8191 * config.PiB, "8191PiB"},
		{"9223372036854775807", 1<<63 - 1, "9223372036854775807"},
	}
	for _, tt := range tests {
		got, err := config.ParseBytes(tt.in)
		if err != nil || got != tt.want || got.String() != tt.print {
			t.Errorf("ParseBytes(%q) = %d (%v), %v; want %d (%s)", tt.in, got, got, err, tt.want, tt.print)
		}
		if again, err := config.ParseBytes(got.String()); err != nil || again != got {
			t.Errorf("%q prints %q, which reads as %d, %v", tt.in, got, again, err)
		}
	}
	for in, hint := range map[string]string{
		"":                    "write a number and a unit",
		"MiB":                 "write a number and a unit",
		"_":                   "write a number and a unit",
		"-1":                  "negative",
		"1.5GiB":              "not a whole number",
		"64M":                 "write 64MiB (steps of 1024) or 64MB (of 1000)",
		"64Gi":                "write 64GiB",
		"5 apples":            "no unit of size",
		"8192PiB":             "too large",
		"9223372036854775808": "too large",
	} {
		if got, err := config.ParseBytes(in); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseBytes(%q) = %v, %v; want an error with %q", in, got, err, hint)
		}
	}
}

func TestDuration(t *testing.T) {
	tests := []struct {
		in    string
		want  config.Duration
		print string
	}{
		{"0", 0, "0s"},
		{"0s", 0, "0s"},
		{"0d", 0, "0s"},
		{"250ms", config.Duration(250 * time.Millisecond), "250ms"},
		{"90s", config.Duration(90 * time.Second), "1m30s"},
		{"60s", config.Duration(time.Minute), "1m"},
		{"1h", config.Duration(time.Hour), "1h"},
		{"1h30m", config.Duration(90 * time.Minute), "1h30m"},
		{"1h0m30s", config.Duration(time.Hour + 30*time.Second), "1h0m30s"},
		{"24h", config.Day, "1d"},
		{"7d", config.Week, "7d"},
		{"2w", 2 * config.Week, "14d"},
		{"1w1d1h", 8*config.Day + config.Duration(time.Hour), "193h"},
		{"106751d", 106751 * config.Day, "106751d"},
		{"forever", config.Forever, "forever"},
	}
	for _, tt := range tests {
		got, err := config.ParseDuration(tt.in)
		if err != nil || got != tt.want || got.String() != tt.print {
			t.Errorf("ParseDuration(%q) = %d (%v), %v; want %d (%s)", tt.in, got, got, err, tt.want, tt.print)
		}
		if again, err := config.ParseDuration(got.String()); err != nil || again != got {
			t.Errorf("%q prints %q, which reads as %d, %v", tt.in, got, again, err)
		}
	}
	for in, hint := range map[string]string{
		"":                      "not a duration",
		"d":                     "not a duration",
		"soon":                  "not a duration",
		"1d1w":                  "not a duration",
		"1d-1h":                 "not a duration",
		"10":                    "10s for seconds",
		"-1s":                   "negative",
		"106752d":               "too long",
		"106751d24h":            "too long",
		"9223372036854775807ns": "too long", // the value of Forever
	} {
		if got, err := config.ParseDuration(in); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseDuration(%q) = %v, %v; want an error with %q", in, got, err, hint)
		}
	}
}

func TestColdURL(t *testing.T) {
	tests := []struct {
		in    string
		want  config.ColdURL
		print string // empty if it is as it was read
	}{
		{"", config.ColdURL{}, ""},
		{"none", config.ColdURL{Kind: config.ColdNone}, ""},
		{"file:///srv/archive", config.ColdURL{Kind: config.ColdFile, Path: "/srv/archive"}, ""},
		{"file:///srv/a b%20c/", config.ColdURL{Kind: config.ColdFile, Path: "/srv/a b%20c"}, "file:///srv/a b%20c"},
		{"file://./archive", config.ColdURL{Kind: config.ColdFile, Path: "archive"}, ""},
		{"file://../archive", config.ColdURL{Kind: config.ColdFile, Path: "../archive"}, ""},
		{"file://.", config.ColdURL{Kind: config.ColdFile, Path: "."}, ""},
		{"s3://b", config.ColdURL{Kind: config.ColdS3, Bucket: "b"}, ""},
		{"s3://b/", config.ColdURL{Kind: config.ColdS3, Bucket: "b"}, "s3://b"},
		{"s3://my_bucket.x/p/q/", config.ColdURL{Kind: config.ColdS3, Bucket: "my_bucket.x", Prefix: "p/q"}, "s3://my_bucket.x/p/q"},
		{"s3://b/p?region=eu-central-1&endpoint=http://minio:9000&path_style=true",
			config.ColdURL{Kind: config.ColdS3, Bucket: "b", Prefix: "p", Region: "eu-central-1", Endpoint: "http://minio:9000", PathStyle: true}, ""},
		{"s3://b?path_style=false&endpoint=https%3A%2F%2Fs3.example/",
			config.ColdURL{Kind: config.ColdS3, Bucket: "b", Endpoint: "https://s3.example"}, "s3://b?endpoint=https://s3.example"},
	}
	for _, tt := range tests {
		got, err := config.ParseColdURL(tt.in)
		if err != nil || got != tt.want {
			t.Errorf("ParseColdURL(%q) = %+v, %v; want %+v", tt.in, got, err, tt.want)
		}
		print := tt.print
		if print == "" {
			print = tt.in
		}
		if got.String() != print {
			t.Errorf("%q prints %q, want %q", tt.in, got, print)
		}
		if again, err := config.ParseColdURL(got.String()); err != nil || again != got {
			t.Errorf("%q prints %q, which reads as %+v, %v", tt.in, got, again, err)
		}
	}
	for in, hint := range map[string]string{
		"/srv/archive":            "no place for the cold tier",
		"http://minio:9000/b":     "no place for the cold tier",
		"None":                    "no place for the cold tier",
		"file://":                 "names no directory",
		"file://srv/archive":      "write file:///srv/archive or file://./srv/archive",
		"s3://":                   "names no bucket",
		"s3:///p":                 "names no bucket",
		"s3://minio:9000/b":       "has a port after the bucket",
		"s3://key:secret@b":       "cold.access_key_id",
		"s3://b#x":                "after #",
		"s3://b?regoin=x":         "unknown parameter regoin; did you mean region?",
		"s3://b?region=x&region":  "more than once",
		"s3://b?path_style=yes":   "path_style is true or false",
		"s3://b?endpoint=minio":   "endpoint \"minio\" is not of the form",
		"s3://b?endpoint=ftp://x": "endpoint \"ftp://x\" is not of the form",
	} {
		got, err := config.ParseColdURL(in)
		if err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseColdURL(%q) = %+v, %v; want an error with %q", in, got, err, hint)
		}
		if err != nil && strings.Contains(err.Error(), "key:secret") {
			t.Errorf("the error shows the credentials: %v", err)
		}
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	const hidden = "hunter2"
	c := config.Default()
	c.Admin.Token = hidden
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("configured", "token", c.Admin.Token, "admin", c.Admin)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%+v %#v %s %q", c, c, c.Admin.Token, c.Admin.Token), log.String(), string(encoded)} {
		if strings.Contains(text, hidden) {
			t.Errorf("the secret is shown in %s", text)
		}
		if !strings.Contains(text, "********") {
			t.Errorf("it is not shown that there is a secret in %s", text)
		}
	}
}
