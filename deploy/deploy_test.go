// Package deploy_test reads what is in this folder the way the tools do that it is
// written for, as far as that goes without them, and loads every configuration
// that it makes for a server: a setting that does not exist is an error there.
package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"firn/internal/config"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// load is the configuration of `firn serve` with these arguments and variables.
// Files below /etc/firn are those of this folder, all others are secrets.
func load(t *testing.T, args []string, environ map[string]string) config.Config {
	t.Helper()
	if len(args) == 0 || args[0] != "serve" {
		t.Fatalf("the server is run as firn %q, want firn serve", args)
	}
	flags := config.NewFlags()
	serve := struct {
		Config string `name:"config"`
		kong.Plugins
	}{Plugins: kong.Plugins{flags.Struct()}}
	parser, err := kong.New(&serve)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args[1:]); err != nil {
		t.Fatalf("firn %s: %v", strings.Join(args, " "), err)
	}
	var variables []string
	for name, value := range environ {
		variables = append(variables, name+"="+value)
	}
	c, _, err := config.Load(config.Sources{
		File: serve.Config, Environ: variables, Flags: flags.Values(),
		ReadFile: func(name string) ([]byte, error) {
			if name, ok := strings.CutPrefix(name, "/etc/firn/"); ok {
				return os.ReadFile(name)
			}
			return []byte("secret\n"), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// dockerfile is the last stage of the Dockerfile.
type dockerfile struct {
	from, user, healthCheck string
	command                 []string // ENTRYPOINT and CMD
	environ                 map[string]string
}

func parseDockerfile(t *testing.T) dockerfile {
	t.Helper()
	var d dockerfile
	text := regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(read(t, "Dockerfile"), "")
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "FROM":
			d = dockerfile{from: rest, environ: make(map[string]string)}
		case "USER":
			d.user = rest
		case "HEALTHCHECK":
			d.healthCheck = rest
		case "ENV":
			for _, pair := range strings.Fields(rest) {
				name, value, _ := strings.Cut(pair, "=")
				d.environ[name] = value
			}
		case "ENTRYPOINT", "CMD":
			var words []string
			if err := yaml.Unmarshal([]byte(rest), &words); err != nil {
				t.Fatalf("%s is not in the form that needs no shell: %v", word, err)
			}
			d.command = append(d.command, words...)
		case "", "WORKDIR", "COPY", "RUN", "VOLUME", "EXPOSE":
		default:
			t.Errorf("unknown instruction %s", word)
		}
	}
	return d
}

func TestDockerfile(t *testing.T) {
	if text := read(t, "Dockerfile"); !strings.Contains(text, "CGO_ENABLED=0") {
		t.Error("the binary may be linked to libraries that the image does not have")
	}
	d := parseDockerfile(t)
	if !strings.Contains(d.from, "static") && d.from != "scratch" {
		t.Errorf("the last stage is made from %s", d.from)
	}
	if user, _, _ := strings.Cut(d.user, ":"); user == "" || user == "0" || user == "root" {
		t.Errorf("the server runs as %q", d.user)
	}
	if !strings.HasSuffix(d.healthCheck, `CMD ["/usr/bin/firn", "health"]`) {
		t.Errorf("health check: %s", d.healthCheck)
	}
	if d.command[0] != "/usr/bin/firn" {
		t.Errorf("the image runs %q", d.command)
	}
	if c := load(t, d.command[1:], d.environ); c.DataDir != "/var/lib/firn" {
		t.Errorf("data goes to %s, which is no volume", c.DataDir)
	}
}

type compose struct {
	Services map[string]struct {
		Build       struct{ Context, Dockerfile string }
		Image       string
		Command     string
		Environment map[string]string
		Secrets     []string
		Volumes     []string
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	}
	Secrets map[string]struct{ Environment string }
	Volumes map[string]any
}

// variable matches what Compose replaces, with its default.
var variable = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)

func TestCompose(t *testing.T) {
	var c compose
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &c); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		for other, on := range s.DependsOn {
			if _, ok := c.Services[other]; !ok || on.Condition == "" {
				t.Errorf("%s depends on %s (%s)", name, other, on.Condition)
			}
		}
		for _, secret := range s.Secrets {
			if c.Secrets[secret].Environment == "" {
				t.Errorf("%s uses the secret %s, which comes from nowhere", name, secret)
			}
		}
		for _, v := range s.Volumes {
			source, _, _ := strings.Cut(v, ":")
			if file, ok := strings.CutPrefix(source, "./"); ok {
				read(t, file)
			} else if _, ok := c.Volumes[source]; !ok {
				t.Errorf("%s uses the volume %s, which is not declared", name, source)
			}
		}
	}
	firn := c.Services["firn"]
	read(t, filepath.Join(firn.Build.Context, firn.Build.Dockerfile))

	// The server as the image and the file together configure it.
	d := parseDockerfile(t)
	environ := d.environ
	for name, value := range firn.Environment {
		environ[name] = variable.ReplaceAllString(value, "$1")
	}
	args := d.command[1:]
	if firn.Command != "" {
		args = strings.Fields(firn.Command)
	}
	conf := load(t, args, environ)
	if conf.Cold.URL.Endpoint != "http://minio:9000" || conf.Cold.AccessKeyID != "firn-example" {
		t.Errorf("cold storage is %+v", conf.Cold)
	}
	if want := "mb --ignore-existing archive/" + conf.Cold.URL.Bucket; c.Services["bucket"].Command != want {
		t.Errorf("the bucket is made by %q, want %q", c.Services["bucket"].Command, want)
	}
	minio := c.Services["minio"].Environment
	if minio["MINIO_ROOT_USER"] != firn.Environment["FIRN_COLD_ACCESS_KEY_ID"] ||
		minio["MINIO_ROOT_PASSWORD"] != firn.Environment["FIRN_COLD_SECRET_ACCESS_KEY"] {
		t.Error("MinIO and firn have different keys")
	}
	if conf.Admin.Token == "" {
		t.Error("the admin listener has no token")
	}
	checkScrape(t, conf, c)
}

// checkScrape holds prometheus.yml to the server that the Compose file runs.
func checkScrape(t *testing.T, conf config.Config, c compose) {
	t.Helper()
	var p struct {
		ScrapeConfigs []struct {
			MetricsPath   string `yaml:"metrics_path"`
			Authorization struct {
				CredentialsFile string `yaml:"credentials_file"`
			}
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "prometheus.yml")), &p); err != nil {
		t.Fatal(err)
	}
	if len(p.ScrapeConfigs) != 1 || len(p.ScrapeConfigs[0].StaticConfigs) != 1 {
		t.Fatalf("got %+v, want one job with one server", p)
	}
	job := p.ScrapeConfigs[0]
	if target := job.StaticConfigs[0].Targets; len(target) != 1 || target[0] != "firn"+conf.Admin.Listen || job.MetricsPath != "/metrics" {
		t.Errorf("it scrapes %s%s, the server listens on %s", target, job.MetricsPath, conf.Admin.Listen)
	}
	secret, ok := strings.CutPrefix(job.Authorization.CredentialsFile, "/run/secrets/")
	if _, there := c.Secrets[secret]; !ok || !there {
		t.Errorf("it reads the token from %s", job.Authorization.CredentialsFile)
	}
}

// unit is the directives of firn.service, the last of each name; commented says
// that those which wait for the administrator are taken, too.
func unit(t *testing.T, commented bool) (directives, environ map[string]string) {
	t.Helper()
	directives, environ = make(map[string]string), make(map[string]string)
	for line := range strings.Lines(read(t, "firn.service")) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "#"); ok && commented && !strings.HasPrefix(rest, " ") {
			line = rest
		}
		name, value, ok := strings.Cut(line, "=")
		switch {
		case line == "", strings.HasPrefix(line, "#"), strings.HasPrefix(line, "["):
		case !ok:
			t.Errorf("%q is no directive", line)
		case name == "Environment":
			name, value, _ := strings.Cut(value, "=")
			environ[name] = strings.ReplaceAll(value, "%d", "/run/credentials/firn.service")
		default:
			directives[name] = value
		}
	}
	return directives, environ
}

func TestUnit(t *testing.T) {
	for _, commented := range []bool{false, true} {
		directives, environ := unit(t, commented)
		c := load(t, strings.Fields(directives["ExecStart"])[1:], environ)
		if want := "/var/lib/" + directives["StateDirectory"]; c.DataDir != want {
			t.Errorf("data goes to %s, but systemd makes %s", c.DataDir, want)
		}
	}
	directives, _ := unit(t, false)
	for name, want := range map[string]string{
		"NoNewPrivileges": "yes", "ProtectSystem": "strict", "CapabilityBoundingSet": "", "DynamicUser": "yes", "RestartPreventExitStatus": "2 5",
	} {
		if got, ok := directives[name]; !ok || got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
}

// TestUnitVerifies asks systemd itself, where there is one.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not there, the unit is checked by TestUnit alone")
		return
	}
	// It wants the program to exist.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "firn.service")
	text := strings.ReplaceAll(read(t, "firn.service"), "ExecStart=/usr/bin/firn", "ExecStart="+self)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(context.Background(), analyze, "verify", "--man=no", file).CombinedOutput()
	// Warnings, such as of a directive that it does not know, leave the status alone.
	if err != nil || strings.Contains(string(out), file) {
		t.Errorf("%v\n%s", err, out)
	}
}
