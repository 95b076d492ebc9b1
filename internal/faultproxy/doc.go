// Package faultproxy stands between a server and its S3 store and lets requests fail
// by rules. It is for tests that run a real server against a real store: what is
// scripted are the answers, on the wire, and not the calls of this module's own code.
//
// The proxy passes what no rule takes, unchanged, and keeps a record of all requests.
// Signatures stay valid since the host that was signed is passed on; a request that a
// rule changes is signed again.
package faultproxy
