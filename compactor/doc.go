// Package compactor moves bytes from the hot tier to the cold one and lets go of
// what nothing needs: it decides when and what, and takes the steps.
//
//	seal    bytes are written into a new object, then named by one commit
//	evict   hot copies of sealed bytes are given up, oldest first, down to the budget
//	trim    segments below a stream's floor, or of a stream that is gone, are let go of
//	rewrite small segments are merged, and objects of which little is needed are copied
//	sweep   objects that nothing has named for the grace are removed
//	repair  segments in damaged objects are written again from their hot copies
//	reclaim space of evicted bytes is given back to the disk
//
// The compactor proposes; the committer of the hot tier decides, by comparing what
// a command presumes with the catalog of the moment. So two compactors, a deleted
// stream or a crash between any two steps cost at most an object that is written
// for nothing: it was intended, so the sweep finds it.
//
//	crash after intend   nothing was written, or an object that is not named
//	crash after upload   an object that is not named
//	crash after commit   the bytes are in both tiers
//
// Nothing is removed on the word of a listing: only objects that the catalog once
// intended, and of which it knows that nothing names them any more.
package compactor
