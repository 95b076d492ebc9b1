package stream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"firn/pkg/stream"
)

func TestEncodeJSON(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		messages         int
	}{
		{"object", `{"a":1}`, "{\"a\":1}\n", 1},
		{"scalar string", `"a b"`, "\"a b\"\n", 1},
		{"scalar number", `7`, "7\n", 1},
		{"true", `true`, "true\n", 1},
		{"false", `false`, "false\n", 1},
		{"null", `null`, "null\n", 1},
		{"array is flattened", `[1,"x",{"a":[2]}]`, "1\n\"x\"\n{\"a\":[2]}\n", 3},
		{"exactly one level", `[[1,2]]`, "[1,2]\n", 1},
		{"array of empty array", `[[]]`, "[]\n", 1},
		{"empty object", `{ }`, "{}\n", 1},
		{"empty ones inside", "[ { } , [ ] , {\"a\" : { } , \"b\":[\t]} ]", "{}\n[]\n{\"a\":{},\"b\":[]}\n", 3},
		{"white space everywhere", " \t\r\n[ \n{ \"a\" : [ 1 , 2 ] , \"b\" : { \"c\" : null } } , \r\n 3 ] \n", "{\"a\":[1,2],\"b\":{\"c\":null}}\n3\n", 2},
		{"white space around one", "  {\"a\" :1 }\t", "{\"a\":1}\n", 1},
		{"white space in strings stays", `[" a  b "]`, "\" a  b \"\n", 1},
		{"spelling stays", `{"id":9007199254740993,"b":1,"a":2,"b":3,"n":1e400,"z":-0,"f":1.10,"h":"<&>","u":"\u2028","e":"\u00e9"}`,
			`{"id":9007199254740993,"b":1,"a":2,"b":3,"n":1e400,"z":-0,"f":1.10,"h":"<&>","u":"\u2028","e":"\u00e9"}` + "\n", 1},
		{"numbers", `[0,-0,10,-1.50,0.0,1e5,1E+05,1e-5,0e0,12.5E10]`, "0\n-0\n10\n-1.50\n0.0\n1e5\n1E+05\n1e-5\n0e0\n12.5E10\n", 10},
		{"escapes", `"\"\\\/\b\f\n\r\t\u0000\uABcd"`, `"\"\\\/\b\f\n\r\t\u0000\uABcd"` + "\n", 1},
		{"lone surrogate escapes", `["\ud800","\udc00x"]`, "\"\\ud800\"\n\"\\udc00x\"\n", 2},
		{"raw UTF-8", "\"\u00e9\u20ac\U0001F600\ufffd\u2028\x7f\"", "\"\u00e9\u20ac\U0001F600\ufffd\u2028\x7f\"\n", 1},
		{"array where an object was", `{"a":{"b":1},"c":[1,2],"d":{"e":2}}`, `{"a":{"b":1},"c":[1,2],"d":{"e":2}}` + "\n", 1},
		{"duplicate and empty keys", `{"":1,"":2}`, "{\"\":1,\"\":2}\n", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, n, err := stream.EncodeJSON([]byte("before\n"), []byte(c.body))
			if err != nil || n != c.messages || string(got) != "before\n"+c.want {
				t.Errorf("got %q, %d, %v; want %q, %d", got, n, err, "before\n"+c.want, c.messages)
			}
		})
	}
}

func TestEncodeJSONRefuses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		offset     int
		reason     string
	}{
		{"only white space", " \n\t", 3, "unexpected end"},
		{"byte order mark", "\xef\xbb\xbf{}", 0, "expected a value"},
		{"two documents", `{"a":1}{"b":2}`, 7, "text after the end"},
		{"two lines", "{\"a\":1}\n{\"b\":2}", 8, "text after the end"},
		{"text after", `{} x`, 3, "text after the end"},
		{"array then text", `[1] 2`, 4, "text after the end"},
		{"empty array then text", `[] 1`, 3, "text after the end"},
		{"trailing comma in array", `[1,2,]`, 5, "expected a value"},
		{"trailing comma in inner array", `[[1,]]`, 4, "expected a value"},
		{"trailing comma in object", `{"a":1,}`, 7, "member name"},
		{"leading comma", `[,1]`, 1, "expected a value"},
		{"comma alone", `{,}`, 1, "member name"},
		{"NaN", `NaN`, 0, "expected a value"},
		{"Infinity", `[-Infinity]`, 2, "expected a digit"},
		{"single quotes", `'x'`, 0, "expected a value"},
		{"unquoted key", `{a:1}`, 1, "member name"},
		{"number as key", `{1:2}`, 1, "member name"},
		{"no colon", `{"a" 1}`, 5, "expected ':'"},
		{"no value", `{"a":}`, 5, "expected a value"},
		{"no comma in object", `{"a":1 "b":2}`, 7, "expected ',' or '}'"},
		{"no comma in array", `[[1 2]]`, 4, "expected ',' or ']'"},
		{"no comma between messages", `[1 2]`, 3, "expected ',' or ']'"},
		{"wrong bracket for object", `{"a":1]`, 6, "expected ',' or '}'"},
		{"wrong bracket for array", `[[1}]`, 3, "expected ',' or ']'"},
		{"object never closed", `{"a":1`, 6, "unexpected end"},
		{"array never closed", `[1,2`, 4, "unexpected end"},
		{"array just opened", `[`, 1, "unexpected end"},
		{"closing only", `]`, 0, "expected a value"},
		{"comment", `/**/1`, 0, "expected a value"},
		{"short literal", `tru`, 0, "expected a value"},
		{"long literal", `nullx`, 4, "text after the end"},
		{"upper-case literal", `True`, 0, "expected a value"},
		{"leading zero", `{"a":01}`, 6, "leading zero"},
		{"minus alone", `-`, 1, "unexpected end"},
		{"plus", `+1`, 0, "expected a value"},
		{"minus and leading zero", `-01`, 2, "leading zero"},
		{"no digit after the point", `[1.]`, 3, "decimal point"},
		{"no digit before the point", `.5`, 0, "expected a value"},
		{"no digit in exponent", `[1e]`, 3, "exponent"},
		{"sign without exponent", `[1e+]`, 4, "exponent"},
		{"hexadecimal", `0x10`, 1, "text after the end"},
		{"raw tab", "\"a\tb\"", 2, "control character"},
		{"raw LF", "\"a\nb\"", 2, "control character"},
		{"raw NUL", "\"a\x00b\"", 2, "control character"},
		{"raw 0x1f late in a word", "\"abcdefg\x1fabcdefgh\"", 8, "control character"},
		{"string never closed", `"abc`, 4, "unexpected end"},
		{"unknown escape", `"\x41"`, 1, "unknown escape"},
		{"escape at the end", `"\`, 2, "unexpected end"},
		{"short \\u", `"\u12"`, 1, "hexadecimal"},
		{"\\u cut by the end", `"\u123`, 1, "hexadecimal"},
		{"\\u with a bad first digit", `"\ug234"`, 1, "hexadecimal"},
		{"\\u with a bad second digit", `"\u1g34"`, 1, "hexadecimal"},
		{"\\u with a bad third digit", `"\u12@4"`, 1, "hexadecimal"},
		{"\\u with a bad fourth digit", `"\u123/"`, 1, "hexadecimal"},
		{"invalid byte", "[\"a\xff\"]", 3, "UTF-8"},
		{"continuation alone", "\"\x80\"", 1, "UTF-8"},
		{"overlong", "\"\xc0\xaf\"", 1, "UTF-8"},
		{"raw surrogate", "\"\xed\xa0\x80\"", 1, "UTF-8"},
		{"beyond Unicode", "\"\xf4\x90\x80\x80\"", 1, "UTF-8"},
		{"cut rune", "\"\xe2\x82\"", 1, "UTF-8"},
		{"invalid UTF-8 in a key", "{\"\xff\":1}", 2, "UTF-8"},
		{"other white space", "\u00a01", 0, "expected a value"},
		{"form feed", "\f1", 0, "expected a value"},
		{"NUL after", "1\x00", 1, "text after the end"},
		{"NUL instead of a value", "\x00", 0, "expected a value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, n, err := stream.EncodeJSON([]byte("kept"), []byte(c.body))
			if string(got) != "kept" || n != 0 {
				t.Errorf("got %q and %d messages beside the error", got, n)
			}
			var bad *stream.JSONError
			if !errors.As(err, &bad) {
				t.Fatalf("got error %v, want a JSONError", err)
			}
			if bad.Offset != c.offset || !strings.Contains(bad.Reason, c.reason) {
				t.Errorf("got %q at %d, want %q at %d", bad.Reason, bad.Offset, c.reason, c.offset)
			}
		})
	}
}

func TestEncodeJSONNothingToStore(t *testing.T) {
	for body, want := range map[string]error{
		"":         stream.ErrEmptyBody,
		"[]":       stream.ErrEmptyArray,
		" [\t] \n": stream.ErrEmptyArray,
	} {
		if got, n, err := stream.EncodeJSON([]byte("x"), []byte(body)); !errors.Is(err, want) || n != 0 || string(got) != "x" {
			t.Errorf("body %q: got %q, %d, %v; want %v", body, got, n, err, want)
		}
	}
}

func TestEncodeJSONDepth(t *testing.T) {
	nest := func(opening, closing string, depth int) string {
		return strings.Repeat(opening, depth) + "1" + strings.Repeat(closing, depth)
	}
	const most = stream.MaxJSONDepth
	for _, c := range []struct {
		name, body string
		legal      bool
	}{
		{"objects at the limit", nest(`{"a":`, "}", most), true},
		{"objects beyond it", nest(`{"a":`, "}", most+1), false},
		{"arrays in a message at the limit", nest("[", "]", 1+most), true},
		{"arrays in a message beyond it", nest("[", "]", 1+most+1), false},
		{"empty array counts", strings.Repeat("[", 1+most) + "[]" + strings.Repeat("]", 1+most), false},
		{"arrays and objects in turns", nest(`[{"a":`, "}]", most/2), true},
		{"one message after another", "[" + strings.Repeat(nest("[", "]", most)+",", 3) + "1]", true},
		{"five million brackets", strings.Repeat("[", 5_000_000), false},
		{"five million braces", strings.Repeat(`{"a":`, 5_000_000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := stream.EncodeJSON(nil, []byte(c.body))
			var bad *stream.JSONError
			if c.legal && err != nil || !c.legal && !errors.As(err, &bad) {
				t.Fatalf("got error %v", err)
			}
			if bad != nil && bad.Offset > 6*(most+2) {
				t.Errorf("refused only at byte %d", bad.Offset)
			}
			if c.legal && !json.Valid(bytes.ReplaceAll(got, []byte("\n"), nil)) && c.name != "one message after another" {
				t.Errorf("stored text is not JSON")
			}
		})
	}
}

// Every byte at every place of a short string is judged as the standard library does.
func TestEncodeJSONStringBytes(t *testing.T) {
	for length := range 5 {
		for at := range length {
			for c := range 256 {
				s := bytes.Repeat([]byte{'a'}, length)
				s[at] = byte(c)
				body := slices.Concat([]byte{'"'}, s, []byte{'"'})
				_, _, err := stream.EncodeJSON(nil, body)
				if want := strictJSON(body); (err == nil) != want {
					t.Fatalf("%q: got %v, want valid %v", body, err, want)
				}
			}
		}
	}
}

func TestEncodeJSONDoesNotAllocate(t *testing.T) {
	body := []byte(`[ {"id": 1, "text": "déjà vu \u00e9", "list": [1.5, true, null]}, "x" ]`)
	dst := make([]byte, 0, len(body)+1)
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := stream.EncodeJSON(dst, body); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAppendJSONArray(t *testing.T) {
	for _, c := range []struct{ ndjson, want string }{
		{"", "[]"},
		{"1\n", "[1]"},
		{"1\n[2,3]\n{\"a\":\"\\n\"}\n", `[1,[2,3],{"a":"\n"}]`},
	} {
		if got := stream.AppendJSONArray([]byte("x\n"), []byte(c.ndjson)); string(got) != "x\n"+c.want {
			t.Errorf("%q: got %q, want %q", c.ndjson, got, "x\n"+c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	var got []string
	for m := range stream.Messages([]byte("1\n[2]\n\"x\"\n")) {
		got = append(got, string(m))
	}
	if want := []string{"1", "[2]", `"x"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for m := range stream.Messages([]byte("1\n2\n")) {
		if cap(m) != 1 {
			t.Error("a message can be appended to over the next one")
		}
		break
	}
	for m := range stream.Messages(nil) {
		t.Errorf("got %q from nothing", m)
	}
}

// strictJSON is the specification in terms of the standard library, but for the
// limit on depth.
func strictJSON(body []byte) bool { return json.Valid(body) && utf8.Valid(body) }

func FuzzEncodeJSON(f *testing.F) {
	for _, s := range []string{
		`{"a":[1,2,{"b":null}],"c":"\ud800é"}`, ` [ 1 , [ ] , { } ] `, `[]`, `-0.1e+5`, "\"\xed\xa0\x80\"", `[1,]`, `{"a":01}`, `"abcdefgh\tabcdefgh"`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		stored, n, err := stream.EncodeJSON(nil, body)
		var bad *stream.JSONError
		if errors.As(err, &bad) {
			if bad.Offset < 0 || bad.Offset > len(body) {
				t.Fatalf("error at %d of %d bytes", bad.Offset, len(body))
			}
			if strictJSON(body) && !strings.Contains(bad.Reason, "too deep") {
				t.Fatalf("refused valid text: %v", err)
			}
			return
		}
		if err != nil {
			if len(bytes.TrimSpace(body)) != 0 && !json.Valid(body) {
				t.Fatalf("got %v for invalid text", err)
			}
			return
		}
		if !strictJSON(body) {
			t.Fatalf("accepted %q", body)
		}
		if len(stored) > len(body)+1 {
			t.Fatalf("%d bytes stored of %d", len(stored), len(body))
		}
		var want bytes.Buffer
		if err := json.Compact(&want, body); err != nil {
			t.Fatal(err)
		}
		array := stream.AppendJSONArray(nil, stored)
		if want.Bytes()[0] != '[' {
			array = array[1 : len(array)-1]
		}
		if !bytes.Equal(array, want.Bytes()) {
			t.Fatalf("%q stored as %q, rendered %q", body, stored, array)
		}
		messages := 0
		for m := range stream.Messages(stored) {
			if !json.Valid(m) {
				t.Fatalf("message %q is not JSON", m)
			}
			messages++
		}
		if messages != n {
			t.Fatalf("%d messages, said to be %d", messages, n)
		}
	})
}

func benchBody() []byte {
	event := `{"id":"01J8ZC4M3T9Q","time":"2026-11-30T12:34:56.789Z","user":{"name":"Zoë Example","tags":["a","b","c"]},"url":"https://example.test/path?q=1","latency":12.375,"ok":true,"note":"a longer text of the kind that events carry, with a \"quote\" in it"}`
	return []byte("[" + strings.Repeat(event+",", 199) + event + "]")
}

func BenchmarkEncodeJSON(b *testing.B) {
	body := benchBody()
	dst := make([]byte, 0, len(body)+1)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := stream.EncodeJSON(dst, body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeJSONStandardCompact(b *testing.B) {
	body := benchBody()
	var dst bytes.Buffer
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		dst.Reset()
		if err := json.Compact(&dst, body); err != nil {
			b.Fatal(err)
		}
	}
}
