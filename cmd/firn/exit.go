package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"firn/internal/backup"
	"firn/internal/config"
	"firn/internal/verify"
	"firn/pkg/client"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// Exit codes. They are documented in --help (description) and docs/operations.md.
const (
	exitOK          = 0
	exitFailure     = 1 // it was tried and did not work
	exitUsage       = 2 // arguments or configuration are wrong: nothing was tried
	exitNotFound    = 3 // the stream, bucket or snapshot does not exist
	exitUnavailable = 4 // a server or a store does not answer: the same may work later
	exitConflict    = 5 // somebody else's, or refused as things are: a person must look
	exitProblems    = 6 // it was looked at, and something is wrong with it
	exitLoss        = 7 // it was rebuilt, and something is missing or may be
)

// description is the head of --help.
const description = `A server that keeps append-only streams for years: hot in Pebble, cold in S3-compatible storage.

Exit codes:
  0  done
  1  it was tried and failed; the message says why
  2  the arguments or the configuration are wrong, nothing was tried
  3  the stream or bucket does not exist
  4  the server or the object store does not answer; the same may work later
  5  refused as things are: the data directory, the cold storage or the address
     belongs to another server, or the server does not do this
  6  firn verify has found problems
  7  firn rebuild has made a store, and something is missing or may be; it says what

Commands that ask a running server take its addresses from --url and --admin-url,
or FIRN_URL and FIRN_ADMIN_URL; the admin token from --token, FIRN_ADMIN_TOKEN or
the file that FIRN_ADMIN_TOKEN_FILE names.`

// exitCode says what went wrong and returns the process's exit code.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "firn:", err)
	for _, class := range []struct {
		code   int
		errors []error
	}{
		{exitUsage, []error{errUsage, errColdWanted, config.ErrInvalid, client.ErrURL, stream.ErrBucketName, stream.ErrStreamName, stream.ErrOffsetMalformed}},
		{exitConflict, []error{hot.ErrLocked, verify.ErrInUse, hot.ErrNotEmpty, backup.ErrAlive, errNoBackup, cold.ErrForeign, cold.ErrStale, cold.ErrFenced, syscall.EADDRINUSE}},
		{exitNotFound, []error{backup.ErrNoCopy, stream.ErrNotFound, stream.ErrBucketNotFound, stream.ErrGone}},
		{exitProblems, []error{errProblems}},
		{exitLoss, []error{errLoss}},
		{exitUnavailable, []error{errUnchecked, client.ErrUnreachable, stream.ErrColdUnavailable, stream.ErrUnavailable, stream.ErrHotFull}},
	} {
		for _, e := range class.errors {
			if errors.Is(err, e) {
				return class.code
			}
		}
	}
	if answer, ok := errors.AsType[*client.Error](err); ok {
		switch answer.Status {
		case http.StatusConflict:
			return exitConflict
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return exitUnavailable
		}
	}
	return exitFailure
}

// errUsage: a command line that makes no sense.
var errUsage = errors.New("see firn --help")
