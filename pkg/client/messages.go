package client

import (
	"encoding/json"
	"fmt"
	"iter"

	"firn/pkg/stream"
)

// Messages decodes the messages of pages, as [Stream.Read] and [Stream.Follow] yield
// them. T may be [json.RawMessage]. It ends with the first error: of the pages, of
// [json.Unmarshal], or [ErrNotJSON].
//
// Who wants to remember a position takes the pages themselves: a message has none.
func Messages[T any](pages iter.Seq2[Page, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for p, err := range pages {
			if err == nil && len(p.Data) > 0 && stream.ModeOf(p.ContentType) != stream.JSON {
				err = fmt.Errorf("content type %q: %w", p.ContentType, ErrNotJSON)
			}
			if err != nil {
				yield(none, err)
				return
			}
			for m := range p.Messages() {
				var v T
				if err := json.Unmarshal(m, &v); err != nil {
					yield(none, fmt.Errorf("decode message: %w", err))
					return
				}
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}
