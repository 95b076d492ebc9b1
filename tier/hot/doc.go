// Package hot is the local tier: a Pebble store that holds the catalog of all
// streams and the bytes that are not given up to cold storage yet.
//
// All changes are commands. One committer goroutine takes what is queued, applies
// each command in order to one batch, commits the batch with a sync, publishes the
// new records and answers. Hence no stream has a lock, many appends share one
// fsync, and whatever a command changes (bytes, marks, producers, indexes, forks)
// changes at once or not at all.
//
// Pebble shows a batch to readers before it is durable. So readers never look at
// the database itself: they take a [View], a Pebble snapshot made between two
// batches, in which everything is synced and the records agree with the bytes.
//
// The marks of a stream, all positions in its stored bytes:
//
//	base ≤ floor ≤ cut ≤ sealed ≤ tail
//
// Below base a fork's bytes are its source's. [floor, sealed) has cold segments,
// [cut, tail) has hot bytes. Clients may read from earliest on. Marks change only
// in a committed batch.
//
// The package knows neither object storage nor HTTP. It names objects, but what an
// object is, and when to make or drop one, is others' business.
package hot
