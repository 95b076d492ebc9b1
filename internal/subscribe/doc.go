// Package subscribe wakes workers when streams have something new: the subscriptions
// of B§6 and B§7, by webhook or by an event in a stream.
//
// What is durable is in the catalog of the hot tier: configurations, cursors, wakes,
// the schedule of retries, signing keys. It changes by commands alone, which compare
// generation and wake, so that two workers never both hold one. What is pending is
// nowhere stored: it is what lies between a cursor and a tail. The [Engine] remembers
// which streams grew since it started and finds the rest at the start, so an append
// writes nothing for subscriptions, and a wake that was due before a crash is found
// again after it.
//
// A wake is given at least once. A stream is never acked further than a worker said,
// or than was in the snapshot that the worker had.
package subscribe
