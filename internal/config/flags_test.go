package config_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"firn/internal/config"
)

// cli is a grammar of two commands that both take all settings.
type cli struct {
	Serve struct {
		File string `name:"config" placeholder:"FILE"`
		kong.Plugins
	} `cmd:""`
	Config struct {
		kong.Plugins
	} `cmd:""`
}

func newParser(t *testing.T, out *strings.Builder) (*kong.Kong, *cli, *config.Flags) {
	t.Helper()
	grammar, flags := new(cli), config.NewFlags()
	grammar.Serve.Plugins = kong.Plugins{flags.Struct()}
	grammar.Config.Plugins = kong.Plugins{config.NewFlags().Struct()}
	parser, err := kong.New(grammar, kong.Name("firn"), kong.Writers(out, out), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	return parser, grammar, flags
}

func TestFlagsOfKong(t *testing.T) {
	parser, grammar, flags := newParser(t, new(strings.Builder))
	_, err := parser.Parse(strings.Fields("serve --config f.yaml --listen :1 --admin-listen 127.0.0.1:2 --data-dir=/d --cold none" +
		" --hot.max-bytes 3GiB --http.cache-public --http.cors-origins= --admin.token-file /run/token"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"listen": ":1", "admin.listen": "127.0.0.1:2", "data_dir": "/d", "cold.url": "none", "hot.max_bytes": "3GiB",
		"http.cache_public": "true", "http.cors_origins": "", "admin.token_file": "/run/token",
	}
	if got := flags.Values(); !reflect.DeepEqual(got, want) || grammar.Serve.File != "f.yaml" {
		t.Fatalf("got %v and file %q, want %v", got, grammar.Serve.File, want)
	}
	c, origins, err := load("", nil, flags.Values())
	if err != nil {
		t.Fatal(err)
	}
	if c.Hot.MaxBytes != 3*config.GiB || !c.HTTP.CachePublic || len(c.HTTP.CORSOrigins) != 0 || string(c.Admin.Token) != "from-a-file" {
		t.Errorf("got %+v", c)
	}
	if got := origins.Of("admin.token"); got != "--admin.token-file" {
		t.Errorf("the token is from %s", got)
	}
}

func TestFlagsFalse(t *testing.T) {
	parser, _, flags := newParser(t, new(strings.Builder))
	if _, err := parser.Parse([]string{"serve", "--http.cache-public=false"}); err != nil {
		t.Fatal(err)
	}
	if got := flags.Values()["http.cache_public"]; got != "false" {
		t.Errorf("got %q", got)
	}
}

func TestFlagsUnknown(t *testing.T) {
	for _, arg := range []string{"--hot.max-byte=1", "--admin.token=t"} {
		parser, _, _ := newParser(t, new(strings.Builder))
		if _, err := parser.Parse([]string{"serve", arg}); err == nil {
			t.Errorf("%s is accepted", arg)
		}
	}
}

func TestFlagsHelp(t *testing.T) {
	var out strings.Builder
	parser, _, _ := newParser(t, &out)
	// Help exits; without that the command line is merely incomplete or not.
	_, _ = parser.Parse([]string{"serve", "--help"})
	help := regexp.MustCompile(`\s+`).ReplaceAllString(out.String(), " ")
	for _, want := range []string{
		"--listen=ADDR", "--cold.url=URL", "--hot.max-bytes=SIZE", "--seal.compression=fast|better",
		"--http.cache-public ", "(default 2GiB).", "(also --cold).", "(also --admin-listen, default 127.0.0.1:4438).",
		"--admin.token-file=FILE",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("%q is not in the help:\n%s", want, out.String())
		}
	}
}
