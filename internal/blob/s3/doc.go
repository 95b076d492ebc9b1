// Package s3 keeps objects in a bucket of S3 or of a store that speaks its
// protocol. It is the only package that imports the AWS SDK.
//
// One call is one attempt: the SDK's own retries are off, package retry owns them.
// (A multipart upload is several requests; any that fails fails the call.) Every
// request has a deadline in proportion to its size and ends when no byte moves for
// Options.IdleTimeout, bodies included.
//
// An answer counts only if it says what it should: "not found" needs the code
// NoSuchKey, a range needs the Content-Range that was asked for, a deletion needs
// its key in the answer. Stores differ most in conditional writes; what this one
// does is found out by trying (probe.go), and a condition that it would ignore is
// refused with blob.ErrNotSupported.
package s3
