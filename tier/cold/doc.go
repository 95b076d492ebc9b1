// Package cold is the cold tier: segments and snapshot blobs in an object store.
//
// It writes objects under keys that are never used twice, reads ranges of them
// through a cache of decoded frames, and removes those it is told to. It decides
// nothing: which objects exist, and which are to go, the catalog says.
//
// No byte counts as read before the checksum that the catalog has of its frame is
// verified. So a short, torn, flipped or swapped object is an error, never a wrong
// or a shorter answer, and is never cached.
//
// A failure of the store is [stream.ErrColdUnavailable]. That an object is missing
// is [ErrMissing] besides: the reader may hold an old record, so the catalog is to
// be looked at once more. It proves nothing about the stream.
package cold
