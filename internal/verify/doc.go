// Package verify checks the hot tier of a store from the outside: it reads the
// Pebble database by the byte tables of docs/format.md, with no code of the tier
// that wrote it, and says where the catalog, its indexes and the data disagree.
//
// The invariant it holds the store to: every fact is written once in a stream's
// record or an object's, and everything else (indexes, counts, links, data values)
// follows from these. It only reads; what to do about a problem is a person's
// decision. Bytes of objects in cold storage are not looked at.
package verify
