package api

import (
	"errors"
	"fmt"

	"firn/pkg/stream"
)

// Errors of requests that the store never sees.
var (
	// errNoRoute: the path names no resource of this server.
	errNoRoute = errors.New("no such resource")
	// errReserved: paths of the control APIs (B§6).
	errReserved = errors.New("the name __ds is reserved")
	// errSubscriptionID: the id in a path cannot be decoded.
	errSubscriptionID = errors.New("subscription id is malformed")
	// errControlBody: not the JSON that the control APIs take.
	errControlBody = errors.New("request body is not JSON of the expected form")
	// errMethod: the resource does not know the method.
	errMethod = errors.New("method is not allowed here")
	// errQuery: the query string cannot be decoded.
	errQuery = errors.New("query string is malformed")
	// errQueryRepeated: a parameter that may be given once was repeated.
	errQueryRepeated = errors.New("query parameter is repeated")
	// errLive: live is neither long-poll nor sse.
	errLive = errors.New("live must be long-poll or sse")
	// errLiveBootstrap: bootstrap is one-shot (X§3.3).
	errLiveBootstrap = errors.New("bootstrap takes no live parameter")
	// errOffsetMissing: a live read without an offset (B§5.7, B§5.8).
	errOffsetMissing = errors.New("a live read needs an offset")
	// errCursor: a number that no cursor of this server ever reaches.
	errCursor = errors.New("cursor is out of range")
	// errLimit: the page size of a listing (X§1.4).
	errLimit = errors.New("limit must be from 1 to 1000")
	// errContentTypeMissing: an append with bytes but without their type (B§5.2).
	errContentTypeMissing = errors.New("append has no content type")
	// errHeaderRepeated: two values of which nobody knows which one was meant.
	errHeaderRepeated = errors.New("a header that may be given once is repeated")
	// errTTL: not a plain non-negative integer (B§5.1).
	errTTL = fmt.Errorf("Stream-TTL must be an integer of seconds from 0 to %d without leading zeros", uint64(stream.MaxTTL))
	// errExpiresAt: not RFC 3339 (B§5.1).
	errExpiresAt = errors.New("Stream-Expires-At must be an RFC 3339 timestamp")
	// errLifetimeTwice: both kinds of lifetime (B§5.1).
	errLifetimeTwice = errors.New("Stream-TTL and Stream-Expires-At exclude each other")
	// errForkedFrom: not the path of a stream of this server (B§4.2).
	errForkedFrom = errors.New("Stream-Forked-From must be the URL path of a stream on this server")
	// errForkHeaders: fork details without a fork (B§5.1).
	errForkHeaders = errors.New("Stream-Fork-Offset and Stream-Fork-Sub-Offset need Stream-Forked-From")
	// errForkSubOffset: malformed, or without an offset to count from (B§4.2).
	errForkSubOffset = errors.New("Stream-Fork-Sub-Offset must be a non-negative integer, and needs Stream-Fork-Offset unless 0")
	// errProducerPartial: some producer headers without the others (B§5.2.1).
	errProducerPartial = errors.New("Producer-Id, Producer-Epoch and Producer-Seq must be given together")
	// errProducerID: empty or too long.
	errProducerID = errors.New("Producer-Id must be 1 to 256 bytes")
	// errProducerNumber: not plain digits, or beyond 2^53-1.
	errProducerNumber = errors.New("Producer-Epoch and Producer-Seq must be integers from 0 to 2^53-1")
	// errSeq: empty or too long.
	errSeq = errors.New("Stream-Seq must be 1 to 256 bytes")
	// errEncoding: a content coding that is not decoded here.
	errEncoding = errors.New("request bodies must not be content-encoded")
	// errBodyTooLarge: more bytes than the limit.
	errBodyTooLarge = errors.New("request body exceeds the size limit")
	// errBodyCut: the body ended early, or its framing is broken.
	errBodyCut = errors.New("request body is incomplete")
	// errBodyTimeout: the body made no progress for too long.
	errBodyTimeout = errors.New("request body stalled")
	// errBodyUnexpected: a body where none has a meaning.
	errBodyUnexpected = errors.New("a read has no body")
	// errOutgoing: answers that clients do not take have used up their memory.
	errOutgoing = errors.New("too many bytes of answers wait for slow clients")
	// errInflight: the bodies being received have used up their memory.
	errInflight = errors.New("too many request bytes in flight")
	// errDraining: the server is about to stop and takes no live readers.
	errDraining = errors.New("server is stopping")
)
