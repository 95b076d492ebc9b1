// Package blob is the one interface to object storage.
//
// A [Store] keeps immutable byte strings under keys. Implementations are the
// packages s3, fs and mem; every concern around them is one wrapper that is a
// Store itself: retry, limit, meter, fault. The suite in blobtest holds them all
// to the contract below. A usual stack, outermost first:
//
//	retry → limit → meter → s3
//
// so that an attempt that waits for its next turn occupies no slot, and every
// attempt is counted.
//
// The invariant that all of it serves: nobody takes a failure of the store for an
// answer of the store. [ErrNotFound] means that the store itself said that this
// key does not exist, never that a bucket, a right or a network was missing; and
// a reader gives the bytes that were asked for, or an error.
//
// Tests against a real S3 server carry a build tag:
//
//	go test -tags integration ./internal/blob/...
package blob
