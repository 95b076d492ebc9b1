package hot

import "firn/pkg/stream"

// lead is how far, in ms, a persisted sliding deadline may be ahead of the true
// one: an eighth of the TTL, at least a second. Renewals in memory cost nothing;
// one is written when half of the lead is used up. So a crash, which forgets the
// renewals in memory, may lengthen a stream's life by the lead but never shorten it.
func lead(ttl uint64) uint64 { return max(ttl*1000/8, 1000) }

// deadline is what to persist when a lifetime begins or is renewed at now; 0 for
// never. Both are in ms.
func deadline(l stream.Lifetime, now uint64) uint64 {
	switch {
	case l.Sliding && l.TTL == 0:
		return now
	case l.Sliding:
		return now + l.TTL*1000 + lead(l.TTL)
	case !l.At.IsZero():
		return uint64(max(l.At.UnixMilli(), 1))
	}
	return 0
}

// stale reports whether a use at now must be persisted.
func stale(r *Record, now uint64) bool {
	l := r.Lifetime
	return l.Sliding && l.TTL > 0 && r.Deadline < now+l.TTL*1000+lead(l.TTL)/2
}

// renew persists a use of the stream by this command, if that is due.
func (t *txn) renew(rec *Record) {
	if stale(rec, t.now) {
		rec.Deadline = deadline(rec.Lifetime, t.now)
	}
}
