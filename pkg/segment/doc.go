// Package segment is the sealed file format: ranges of streams' stored bytes,
// compressed so that any part of one can be read with one ranged GET and so that
// stock tools can read the whole.
//
// An object is standard seekable zstd: independent frames of content, one
// skippable frame that describes them, and the seek table, in this order. The
// invariants:
//
//   - `zstd -dc OBJECT` prints exactly the bytes of the ranges it holds; in JSON
//     mode that is NDJSON, and every frame ends after an LF.
//   - The descriptor alone is enough to enter the object into a catalog again.
//   - No byte is given out before the CRC32C of its compressed frame, the frame's
//     own checksum and its exact length have been verified. A damaged object
//     gives [ErrCorrupt], never other bytes and never a panic.
//   - Nothing is empty: an object has an entry, an entry a byte, a frame a byte.
//   - The cuts between frames depend on the bytes and the options alone, not on
//     how the bytes were chunked when they were appended.
//
// An object may hold several ranges, of several streams of one bucket and mode (a
// pack): small ones share frames, so that objects and requests follow the bytes and
// not the number of streams.
//
// Where objects are kept, how they are called and who may delete them is left to
// others. The byte tables are in docs/format.md.
package segment
