// Package soak runs the real server against a real S3 server, kills it again and
// again while clients write, and compares everything that can be read with what the
// clients were told.
//
// It has tests only, with the build tag "integration". They are small by default; a
// long run is asked for by flags:
//
//	go test -tags integration ./internal/soak -soak.bytes 1GiB -soak.kills 20 -v -timeout 30m
package soak
