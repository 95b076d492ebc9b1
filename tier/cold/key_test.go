package cold_test

import (
	"fmt"
	"path"
	"strings"
	"testing"

	"firn/internal/blob"
	"firn/pkg/stream"
	"firn/tier/cold"
)

// folder is what a key has of a stream.
func folder(t *testing.T, s *cold.Store, id string) string {
	t.Helper()
	key := s.SegmentKey(stream.Name{Bucket: strings.Repeat("b", 64), ID: id}, 1<<63, stream.JSON, 1<<53, 1<<54)
	if err := blob.CheckKey(key); err != nil {
		t.Errorf("id %q: %v", id, err)
	}
	for _, segment := range strings.Split(key, "/") {
		if len(segment) > 255 || segment == "" || strings.HasPrefix(segment, ".") || strings.HasSuffix(segment, ".") {
			t.Errorf("id %q: segment %q of %d bytes", id, segment, len(segment))
		}
	}
	for i := range len(key) {
		c := key[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~=/", c) >= 0) {
			t.Errorf("id %q: key %q holds %q", id, key, c)
		}
	}
	return strings.ToLower(path.Base(path.Dir(key)))
}

func TestIdsStayApartInKeys(t *testing.T) {
	s := open(t, nil, cold.Options{})
	var ids []string
	for c := range 0x100 { // each byte that UTF-8 may hold alone, and each rune of two
		r := string(rune(c))
		ids = append(ids, r, "a"+r, r+"a", "a"+r+"a", r+r)
	}
	ids = append(ids,
		"A", "a~41", "~41", "a~", "~~", ".", "a.", ".a", "a.b", "a. ", "snapshot", "con", "nul.txt", "a/b", "a~2fb", "日本", "Ångström",
		strings.Repeat("x", 122), strings.Repeat("X", 122), strings.Repeat("é", 61),
		strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("x", 202), strings.Repeat("x", 182)+strings.Repeat("y", 20),
		strings.Repeat("x", 1023), strings.Repeat("x", 1024), strings.Repeat("x", 1023)+"y", strings.Repeat("a/", 512), strings.Repeat("\xf0\x9f\x98\x80", 256),
	)
	seen := map[string]string{}
	for _, id := range ids {
		f := folder(t, s, id)
		if was, ok := seen[f]; ok && was != id {
			t.Errorf("ids %q and %q share the folder %q", was, id, f)
		}
		seen[f] = id
	}
}

func TestEscape(t *testing.T) {
	s := open(t, nil, cold.Options{})
	for id, want := range map[string]string{
		"orders-2_a.b":           "orders-2_a.b",
		"Ab":                     "~41b",
		"a.":                     "a~2e",
		".":                      "~2e",
		`:=&@!$'()*,;~%#?\" +`:   "~3a~3d~26~40~21~24~27~28~29~2a~2c~3b~7e~25~23~3f~5c~22~20~2b",
		"é":                      "~c3~a9",
		strings.Repeat("x", 200): strings.Repeat("x", 200),
	} {
		if got := folder(t, s, id); got != "stream="+want {
			t.Errorf("%q became %q, want %q", id, got, want)
		}
	}
}

func TestKeyLayout(t *testing.T) {
	unique := 0
	o := cold.Options{StoreID: "00ff00ff00ff00ff", Unique: func() string { unique++; return fmt.Sprintf("u%d", unique) }}
	s := open(t, nil, o)
	n := stream.Name{Bucket: "test", ID: "a"}
	for _, tt := range []struct{ got, want string }{
		{s.SegmentKey(n, 0xab, stream.Bytes, 5, 1234), "00ff00ff00ff00ff/bucket=test/stream=a/00000000000000ab-0000000000000005-0000000000001234-u1.bin.zst"},
		{s.SegmentKey(n, 0xab, stream.JSON, 5, 1234), "00ff00ff00ff00ff/bucket=test/stream=a/00000000000000ab-0000000000000005-0000000000001234-u2.ndjson.zst"},
		{s.SnapshotKey(n, 0xab, 5), "00ff00ff00ff00ff/bucket=test/stream=a/00000000000000ab-0000000000000005-u3.snapshot"},
		{s.PackKey("test", stream.Bytes), "00ff00ff00ff00ff/bucket=test/packs/u4.bin.zst"},
		{s.PackKey("test", stream.JSON), "00ff00ff00ff00ff/bucket=test/packs/u5.ndjson.zst"},
	} {
		if tt.got != tt.want {
			t.Errorf("key %s\nwant %s", tt.got, tt.want)
		}
		if cold.IsLocal(tt.got) {
			t.Errorf("%s seems local", tt.got)
		}
	}
	o.Local = true
	if k := open(t, nil, o).SnapshotKey(n, 0xab, 5); !cold.IsLocal(k) {
		t.Errorf("%s does not seem local", k)
	}
	if k := open(t, nil, o).PackKey("test", stream.JSON); !cold.IsLocal(k) {
		t.Errorf("%s does not seem local", k)
	}
	if a, b := open(t, nil, cold.Options{}).SnapshotKey(n, 1, 1), open(t, nil, cold.Options{}).SnapshotKey(n, 1, 1); a == b {
		t.Errorf("two stores made the same key %s", a)
	}
}
