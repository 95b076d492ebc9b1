package stream_test

import (
	"errors"
	"strings"
	"testing"

	"firn/pkg/stream"
)

func TestCheckBucket(t *testing.T) {
	for s, ok := range map[string]bool{
		"abcd": true, "a_-9": true, "____": true, strings.Repeat("a", 64): true,
		"": false, "abc": false, strings.Repeat("a", 65): false,
		"Abcd": false, "ab.d": false, "ab/d": false, "abc\x00": false, "abcé": false, "abc ": false,
		"__ds": false, "__ds_": true,
	} {
		if err := stream.CheckBucket(s); (err == nil) != ok || err != nil && !errors.Is(err, stream.ErrBucketName) {
			t.Errorf("CheckBucket(%q) = %v", s, err)
		}
	}
}

// Lengths are counted in bytes of the decoded key, "{bucket}/{stream}" together.
func TestParseNameLimits(t *testing.T) {
	emoji := strings.Repeat("🧊", 29)
	for _, c := range []struct {
		name, bucket, id string
		want             error
	}{
		{"116 bytes of emoji", "trial", emoji, nil},
		{"116 bytes of emoji and one more", "trial", emoji + "a", stream.ErrStreamName},
		{"57 bytes in the longest bucket", strings.Repeat("b", 64), strings.Repeat("i", 57), nil},
		{"58 bytes in the longest bucket", strings.Repeat("b", 64), strings.Repeat("i", 58), stream.ErrStreamName},
		{"117 bytes in the shortest bucket", "four", strings.Repeat("i", 117), nil},
		{"118 bytes in the shortest bucket", "four", strings.Repeat("i", 118), stream.ErrStreamName},
		{"one byte", "four", "i", nil},
		{"empty", "four", "", stream.ErrStreamName},
		{"bad bucket", "two", "i", stream.ErrBucketName},
	} {
		t.Run(c.name, func(t *testing.T) {
			n, err := stream.ParseName(c.bucket, c.id)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if want := (stream.Name{Bucket: c.bucket, ID: c.id}); err == nil && n != want {
				t.Fatalf("got %q, want %q", n, want)
			}
		})
	}
}

func TestParseNameIDs(t *testing.T) {
	for id, ok := range map[string]bool{
		"snapshot": true, "bootstrap": true, "Streams": true, "streams2": true, "__ds": true,
		"a+b": true, "a b": true, "é": true, "e\u0301": true, ".": true, "a.b": true, "%73treams": true,
		":=&@!$'()*,": true, "\x01": true,
		"streams": false, "a/b": false, "..": false, "a..b": false, "a\x00": false, "\xff": false, "\xed\xa0\x80": false,
	} {
		if _, err := stream.ParseName("trial", id); (err == nil) != ok {
			t.Errorf("ParseName(%q) = %v", id, err)
		}
	}
	composed, _ := stream.ParseName("trial", "é")
	decomposed, _ := stream.ParseName("trial", "e\u0301")
	if composed == decomposed {
		t.Error("ids are normalised")
	}
}

func TestParsePath(t *testing.T) {
	long := strings.Repeat("a", stream.MaxPath)
	for _, c := range []struct {
		segments []string
		id       string // "" is refused
	}{
		{[]string{"a"}, "a"},
		{[]string{"a", "b", "c"}, "a/b/c"},
		{[]string{"streams"}, "streams"},
		{[]string{"a", "__ds"}, "a/__ds"},
		{[]string{long}, long},
		{[]string{long[:1000], long[:23]}, long[:1000] + "/" + long[:23]},
		{[]string{long[:1000], long[:24]}, ""},
		{[]string{long + "a"}, ""},
		{nil, ""},
		{[]string{""}, ""},
		{[]string{"a", ""}, ""},
		{[]string{"__ds"}, ""},
		{[]string{"__ds", "a"}, ""},
		{[]string{"a", ".."}, ""},
		{[]string{"a/b"}, ""},
		{[]string{"a\x00"}, ""},
	} {
		n, err := stream.ParsePath(c.segments)
		if c.id == "" {
			if !errors.Is(err, stream.ErrStreamName) {
				t.Errorf("ParsePath(%.40q) = %.40v, %v; want a refusal", c.segments, n, err)
			}
		} else if err != nil || n != (stream.Name{Bucket: stream.DefaultBucket, ID: c.id}) {
			t.Errorf("ParsePath(%.40q) = %.40v, %v", c.segments, n, err)
		}
	}
}

// Only names that the bucketed surface can reach are listed and counted there.
func TestListed(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "a/b": false, "streams": false,
		strings.Repeat("a", stream.MaxKey-len("default/")):   true,
		strings.Repeat("a", stream.MaxKey-len("default/")+1): false,
	} {
		if got := (stream.Name{Bucket: stream.DefaultBucket, ID: id}).Listed(); got != want {
			t.Errorf("Listed(%.40q) = %t", id, got)
		}
	}
}

// The slot of a name is part of the key layout: these values never change.
func TestIDHoldsTheSlotOfItsName(t *testing.T) {
	for n, want := range map[stream.Name]string{
		{Bucket: "default", ID: "a"}:     "633d123456789abc",
		{Bucket: "trial", ID: "räume/1"}: "39aa123456789abc",
	} {
		if got := stream.NewID(n, 0xffff_1234_5678_9abc).String(); got != want {
			t.Errorf("id of %s is %s, want %s", n, got, want)
		}
	}
}

func TestParseID(t *testing.T) {
	for _, id := range []stream.ID{0, 1, 0x8000_0000_0000_0000, 0xffff_ffff_ffff_ffff} {
		if got, err := stream.ParseID(id.String()); got != id || err != nil {
			t.Errorf("ParseID(%s) = %s, %v", id, got, err)
		}
	}
	for _, s := range []string{"", "0", "000000000000000", "00000000000000000", "000000000000000g", "+000000000000001", "0x00000000000001", "0000_00000000001"} {
		if got, err := stream.ParseID(s); err == nil {
			t.Errorf("ParseID(%q) = %s", s, got)
		}
	}
}
