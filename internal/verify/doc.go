// Package verify checks a store from the outside: it reads the Pebble database by the
// byte tables of docs/format.md and the objects by the sealed format, with no code of
// the tiers that wrote them, and says where catalog, indexes, data and objects disagree.
//
// The invariant it holds the store to: every fact is written once in a stream's
// record or an object's, and everything else (indexes, counts, links, data values)
// follows from these; what the catalog names exists, is what it says, and has the
// bytes that the hot tier has. It only reads; what to do about a problem is a person's
// decision.
package verify
