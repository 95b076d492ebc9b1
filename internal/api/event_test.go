package api

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"firn/pkg/stream"
)

func TestAppendEvent(t *testing.T) {
	at := stream.Offset{Life: 7, Position: 42}
	const open = `event: control` + "\n" + `data:{"streamNextOffset":"0000000000000007_0000000000000042","streamCursor":"5"}` + "\n\n"
	const upToDate = `event: control` + "\n" + `data:{"streamNextOffset":"0000000000000007_0000000000000042","streamCursor":"5","upToDate":true}` + "\n\n"
	const closed = `event: control` + "\n" + `data:{"streamNextOffset":"0000000000000007_0000000000000042","upToDate":true,"streamClosed":true}` + "\n\n"
	tests := []struct {
		name string
		data string
		as   encoding
		c    control
		want string
	}{
		{"nothing, up to date", "", asText, control{at, 5, true, false}, upToDate},
		{"nothing, closed", "", asText, control{at, 5, true, true}, closed},
		{"text", "hello", asText, control{at, 5, false, false}, "event: data\ndata:hello\n\n" + open},
		{"text, all line ends", "a\r\nb\rc\nd", asText, control{at, 5, false, false}, "event: data\ndata:a\ndata:b\ndata:c\ndata:d\n\n" + open},
		{"text, last line end", "a\n", asText, control{at, 5, false, false}, "event: data\ndata:a\ndata:\n\n" + open},
		{"text, leading space", " a\n  b", asText, control{at, 5, false, false}, "event: data\ndata:  a\ndata:   b\n\n" + open},
		{"text, other separators", "a\u0085b\u2028c", asText, control{at, 5, false, false}, "event: data\ndata:a\u0085b\u2028c\n\n" + open},
		{"json", "{\"a\":1}\n[2]\n", asJSON, control{at, 5, true, false}, "event: data\ndata:[{\"a\":1},[2]]\n\n" + upToDate},
		{"binary", "\x00\xff", asBase64, control{at, 5, true, true}, "event: data\ndata:AP8=\n\n" + closed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(appendEvent(nil, []byte(tt.data), tt.as, tt.c)); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestEncodingOf(t *testing.T) {
	tests := []struct {
		contentType string
		want        encoding
	}{
		{"application/json; charset=utf-8", asJSON},
		{"text/plain", asText},
		{"TEXT/html", asText},
		{"application/ld+json", asBase64},
		{"application/octet-stream", asBase64},
	}
	for _, tt := range tests {
		if got := encodingOf(tt.contentType, stream.ModeOf(tt.contentType)); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.contentType, got, tt.want)
		}
	}
}

// parsedEvent is what the standard's algorithm makes of an event.
type parsedEvent struct{ name, data string }

// parseEvents follows the parsing rules of the HTML standard. An event that is not
// ended by a blank line is dropped.
func parseEvents(text string) []parsedEvent {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	var out []parsedEvent
	var e parsedEvent
	var lines []string
	for {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			return out
		}
		text = rest
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if lines != nil {
				e.data = strings.Join(lines, "\n")
				out = append(out, e)
			}
			e, lines = parsedEvent{}, nil
		case field == "event":
			e.name = value
		case field == "data":
			lines = append(lines, value)
		}
	}
}

func TestTextCannotForgeEvents(t *testing.T) {
	texts := []string{
		"a\r\n\r\nevent: control\ndata: {\"streamNextOffset\":\"x\"}\n\n",
		"\rdata: z\r\revent: control\r",
		"\n\n\nevent:control\ndata:{}\n\n",
		": comment\nid: 5\nretry: 1",
		" ", "  ", "\r", "\n", "\ufeffx",
	}
	for _, text := range texts {
		got := parseEvents(string(appendEvent(nil, []byte(text), asText, control{})))
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
		if len(got) != 2 || got[0] != (parsedEvent{"data", want}) || got[1].name != "control" {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzTextEvents(f *testing.F) {
	f.Add([]byte("a\r"), []byte("\nb"), []byte("\xc3"))
	f.Add([]byte("\xe2\x82"), []byte("\xac"), []byte("\r\n"))
	f.Add([]byte(" \r\n"), []byte("\n"), []byte("\xff"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		whole := bytes.Join([][]byte{a, b, c}, nil)
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(whole))
		for _, comesBack := range []bool{false, true} { // after each event, to where that ends
			var cut textCut
			var got strings.Builder
			position, told := 0, 0
			for i, page := range [][]byte{a, b, c, nil} {
				if comesBack {
					cut, page = textCut{}, whole[told:position+len(page)]
					position = told
				}
				position += len(page)
				deliver, held := cut.next(page, i == 3)
				if held > 3 || i == 3 && held > 0 || position-held < told {
					t.Fatalf("page %d: %d bytes held at %d after %d", i, held, position, told)
				}
				told = position - held
				if len(deliver) == 0 {
					continue
				}
				events := parseEvents(string(appendEvent(nil, deliver, asText, control{})))
				if len(events) != 2 {
					t.Fatalf("%q became %d events", deliver, len(events))
				}
				got.WriteString(events[0].data)
			}
			if got.String() != want || told != len(whole) {
				t.Errorf("%q, %q, %q: got %q to %d; comes back: %v", a, b, c, got.String(), told, comesBack)
			}
		}
	})
}

func TestTextCut(t *testing.T) {
	tests := []struct {
		name  string
		pages []string
		want  []string
	}{
		{"two bytes", []string{"a\xc3", "\xa9b"}, []string{"a", "\u00e9b"}},
		{"four bytes, one by one", []string{"\xf0", "\x9f", "\x98", "\x80"}, []string{"", "", "", "\U0001f600"}},
		{"no character", []string{"\xff", "a"}, []string{"\xff", "a"}},
		{"never completed", []string{"\xc3", "a"}, []string{"", "\xc3a"}},
		{"only continuations", []string{"\x80\x80\x80\x80", "a"}, []string{"\x80\x80\x80\x80", "a"}},
		{"crlf over two pages", []string{"a\r", "\n", "b"}, []string{"a", "\r\n", "b"}},
		{"two line ends over two pages", []string{"a\r", "\r\n", "\n"}, []string{"a", "\r\r\n", "\n"}},
		{"cr alone", []string{"\r", "\r", "a"}, []string{"", "\r", "\ra"}},
		{"cr after half a character", []string{"\xc3", "\r", "\n"}, []string{"", "\xc3", "\r\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var cut textCut
			for i, page := range tt.pages {
				got, _ := cut.next([]byte(page), false)
				if string(got) != tt.want[i] {
					t.Errorf("page %d: got %q, want %q", i, got, tt.want[i])
				}
			}
		})
	}
	var cut textCut
	cut.next([]byte("\xe2\x82"), false)
	if got, held := cut.next(nil, true); string(got) != "\xe2\x82" || held != 0 {
		t.Errorf("at the end of the stream: got %q, %d held", got, held)
	}
	if got, held := cut.next([]byte("a\r"), true); string(got) != "a\r" || held != 0 {
		t.Errorf("a line end at the end of the stream: got %q, %d held", got, held)
	}
}

func TestBase64EventsDecodeAlone(t *testing.T) {
	for n := range 9 {
		data := bytes.Repeat([]byte{0xfb}, n+1)
		e := parseEvents(string(appendEvent(nil, data, asBase64, control{})))[0]
		got, err := base64.StdEncoding.DecodeString(e.data)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: got %x, %v", n+1, got, err)
		}
	}
}
