// Package stream holds the words of firn: names, incarnations, offsets, content
// modes, idempotent producers, the pure rule that admits an append, and the
// errors that cross package borders.
//
// It does no I/O and knows no storage; everything in it can be tested by calling
// a function. Section numbers in comments: "B§" is the base protocol
// (PROTOCOL.md), "X§" the extensions (buckets, snapshots, bootstrap).
package stream
