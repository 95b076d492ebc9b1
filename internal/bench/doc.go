// Package bench measures a server of the Durable Streams protocol over HTTP, beside what
// the same machine could do at most and, if there is one, beside a second server.
//
// Its rule: times of one machine at one moment mean nothing, so every figure that counts
// is a ratio of sides that took turns within one run (A B, B A, A B …). A [Side] is loaded
// by workers that each have a connection; what they did is a [Sample]; a case turns the
// samples of all rounds into [Figure] values, some of which have a target. Each answer is
// checked: a load that gets errors has measured errors, which are reported and fail the run.
package bench
