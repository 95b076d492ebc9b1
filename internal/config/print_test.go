package config_test

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"firn/internal/config"
)

func TestPrint(t *testing.T) {
	c, origins, err := load("hot:\n  max_bytes: 1GB\n", []string{"FIRN_ADMIN_TOKEN_FILE=/run/token"}, map[string]string{"seal.max_age": "2h"})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := config.Print(&b, c, origins); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Address that clients connect to, host:port.",
		"\nlisten: 127.0.0.1:4437 # default\n",
		"\nhot:\n  # The budget:",
		"\n  # Values: 64KiB to 1PiB.\n  max_bytes: 1000000000 # from firn.yaml:2\n",
		"\n  hard_bytes: 1953125KiB # default\n",
		"\n  max_age: 2h # from --seal.max-age\n",
		"\n  # token: (not shown; from FIRN_ADMIN_TOKEN_FILE)\n",
		"\n  # access_key_id: (not set)\n",
		"\n  trusted_proxies: [] # default\n",
		"\n  cors_origins: [\"*\"] # default\n",
		"\n  cert_file: \"\" # default\n",
		"\n  level: info # default\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "from-a-file") {
		t.Error("the token is shown")
	}
}

func TestPrintReadsBack(t *testing.T) {
	c, origins, err := load(`
data_dir: "/srv/firn: a, b # c"
cold: {url: "s3://b/p?endpoint=http://minio:9000&path_style=true"}
http: {trusted_proxies: ["fd00::/8", 10.0.0.0/8], cors_origins: ["https://a.example", "http://b.example:81"], cache_public: true}
tls: {cert_file: "null", key_file: "- \"quoted\" \\ \t'"}
snapshot: {keep_history: forever}
log: {level: debug, format: json}
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := config.Print(&b, c, origins); err != nil {
		t.Fatal(err)
	}
	again, _, err := load(b.String(), nil, nil)
	if err != nil {
		t.Fatalf("%v\nin:\n%s", err, b.String())
	}
	if !reflect.DeepEqual(again, c) {
		t.Errorf("got  %+v\nwant %+v\nfrom:\n%s", again, c, b.String())
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	want, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := config.Document(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("docs/configuration.md is not what the declarations say: run go generate ./internal/config")
	}
}
