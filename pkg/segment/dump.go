package segment

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Dump prints the tail of an object of objectSize bytes for people: what it is,
// its ranges and its frames. Names are quoted, so that a terminal survives them.
// Errors are those of [ReadTail] and of w.
func Dump(w io.Writer, r io.ReaderAt, objectSize int64) error {
	d, err := ReadTail(r, objectSize)
	if err != nil {
		return err
	}
	length, content, err := checkFrames(d.Frames)
	if err != nil {
		return corrupt("descriptor: %v", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "format\t%d\n", descriptorVersion)
	fmt.Fprintf(t, "store\t%q\n", d.Store)
	fmt.Fprintf(t, "bucket\t%q\n", d.Bucket)
	fmt.Fprintf(t, "mode\t%s\n", d.Mode)
	fmt.Fprintf(t, "object\t%d bytes, %d of them frames\n", objectSize, length)
	fmt.Fprintf(t, "content\t%d bytes, %.2f times the object\n", content, float64(content)/float64(objectSize))

	fmt.Fprintf(t, "\nentry\tstream\tincarnation\tlife\tcreated\tfrom\tto\tframe\tskip\tcontent type\n")
	for i, e := range d.Entries {
		fmt.Fprintf(t, "%d\t%q\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%q\n", i, e.Stream, e.Incarnation, e.Life,
			formatMs(e.CreatedMs), e.From, e.To, e.FirstFrame, e.Skip, e.ContentType)
	}
	fmt.Fprintf(t, "\nframe\toffset\tlength\tcontent\tcrc32c\tappended\n")
	var offset uint64
	for i, f := range d.Frames {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%08x\t%s\n", i, offset, f.Length, f.Content, f.CRC, formatMs(f.TimeMs))
		offset += uint64(f.Length)
	}
	return t.Flush()
}

func formatMs(ms uint64) string {
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02T15:04:05.000Z")
}
