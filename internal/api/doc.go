// Package api is the HTTP surface of firn: the Durable Streams protocol with
// buckets, snapshots and bootstrap. It parses a request, calls [tier.Store] and
// renders what the store answered; it keeps no state about streams.
//
// Its invariants: a request body is whole before the store sees it, so that a cut
// upload changes nothing; an error is rendered in one place, from one table; a
// response that cannot be finished is broken off, never ended as if it were whole;
// and no write to a client waits longer than the stall timeout, while no response
// has a limit on its length in time.
//
// Section numbers in comments: "B§" is the base protocol (PROTOCOL.md), "X§" the
// extensions (buckets, snapshots, bootstrap).
package api
