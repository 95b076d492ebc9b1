package config_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"firn/internal/config"
)

// FuzzLoad: any file is either refused as invalid or gives a configuration that
// prints as a file of the same meaning.
func FuzzLoad(f *testing.F) {
	f.Add("listen: :0\ncold: none\nhot: {max_bytes: 1_000_000}\n")
	f.Add("data_dir: '#'\nhttp:\n  cors_origins:\n  - https://a.example # c\n  trusted_proxies: []\nlog:\n")
	f.Add("cold: s3://b/%20?region=a+b\ntls: {cert_file: \"\\u00e9: \", key_file: '~'}\n---\n")
	f.Add("snapshot: &a {keep_history: 1w1d}\nseal: *a\n<<: {x: 1}\n")
	f.Fuzz(func(t *testing.T, yaml string) {
		c, origins, err := load(yaml, nil, nil)
		if err != nil {
			if !errors.Is(err, config.ErrInvalid) {
				t.Fatalf("not an ErrInvalid: %v", err)
			}
			return
		}
		var b strings.Builder
		if err := config.Print(&b, c, origins); err != nil {
			t.Fatal(err)
		}
		if c.Admin.Token != "" || c.Cold.AccessKeyID != "" {
			return // secrets are not printed, and others may depend on them
		}
		again, _, err := load(b.String(), nil, nil)
		if err != nil {
			t.Fatalf("%v\nin:\n%s", err, b.String())
		}
		if !reflect.DeepEqual(again, c) {
			t.Errorf("got  %+v\nwant %+v\nfrom:\n%s", again, c, b.String())
		}
	})
}
