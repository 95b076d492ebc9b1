// Package limit is what a server is compared with: how fast the same machine, kernel,
// Go runtime and disk could be at most if the server had nothing to do. [Server] answers
// HTTP requests with answers that were recorded before, with or without a synced log,
// or with a file that the kernel sends; [DecodeAll] reads objects of cold storage;
// [OpenPebble] opens a database. None of it keeps anything, or a promise.
package limit
