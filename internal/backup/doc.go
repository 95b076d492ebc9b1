// Package backup keeps copies of the catalog in the bucket, and makes a store of them
// when the local disk is lost.
//
// A copy is the catalog at one moment, with the bytes that have no cold copy yet. It
// is a base (everything) and the deltas after it: together they are a generation.
// Each object is written once, has a checksum, and names the one before it by number
// and checksum. A copy counts only with all of its objects.
//
// The invariant is that the newest copy can always be rebuilt from: an object that a
// copy names is removed from the bucket only after a newer copy has said that nothing
// needs it (see [hot.Store.Uncopied]). A copy younger than the sweep's grace can be
// rebuilt from, too.
//
// What was appended after the newest copy and not sealed is lost with the disk. The
// rebuilt streams begin a new life, so that no offset of a lost byte names another.
package backup
