package tier_test

import (
	"strings"

	"firn/pkg/stream"
	"firn/tier"
)

// publish makes a snapshot of a stream at a position.
func (r *rig) publish(id string, at uint64, body string) {
	r.t.Helper()
	r.must(r.tryPublish(id, at, body))
}

func (r *rig) tryPublish(id string, at uint64, body string) error {
	r.t.Helper()
	return r.PublishSnapshot(bg, tier.PublishRequest{
		Name: named(id), Offset: stream.Offset{Life: r.head(id).Tail.Life, Position: at},
		ContentType: "text/plain", Size: int64(len(body)), Body: strings.NewReader(body),
	})
}
