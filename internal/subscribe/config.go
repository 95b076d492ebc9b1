package subscribe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"firn/internal/subscribe/glob"
	"firn/internal/subscribe/webhook"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Limits of subscriptions. Lengths are in bytes, times in milliseconds.
const (
	MaxID          = 256
	MaxDescription = 1024
	MaxWorker      = 256
	MaxRoot        = 2048 // the URL that a subscription is made through
	MaxStreams     = 1000 // in one request
	MaxWakeStreams = 500  // in one wake; what else is pending is for the next
	MinLease       = 1_000
	MaxLease       = 600_000
	DefaultLease   = 30_000
)

// The types of subscriptions.
const (
	typeWebhook = "webhook"
	typePull    = "pull-wake"
)

// Config is a subscription as it is asked for (B§6.2).
type Config struct {
	Type        string         `json:"type"`
	Pattern     string         `json:"pattern"`
	Streams     []string       `json:"streams"`
	Webhook     *WebhookConfig `json:"webhook"`
	WakeStream  string         `json:"wake_stream"`
	LeaseTTL    *uint64        `json:"lease_ttl_ms"`
	Description string         `json:"description"`
}

// WebhookConfig is the receiver of a webhook.
type WebhookConfig struct {
	URL string `json:"url"`
}

// checked is a Config that has been found good.
type checked struct {
	sub     hot.Subscription
	pattern glob.Pattern
	streams []stream.Name
}

// CheckID returns [ErrInvalid] unless id may be a subscription's.
func CheckID(id string) error {
	if id == "" || len(id) > MaxID || !utf8.ValidString(id) || strings.ContainsAny(id, "/\x00") {
		return invalid("subscription ids are 1 to %d bytes of UTF-8 without slash and NUL", MaxID)
	}
	return nil
}

// check validates a configuration and gives it one form, which is hashed. Errors:
// [ErrInvalid], [webhook.ErrTarget].
func (c Config) check(scope Scope, id string, targets webhook.Targets) (checked, error) {
	var k checked
	if err := CheckID(id); err != nil {
		return k, err
	}
	k.sub = hot.Subscription{Scope: string(scope), ID: id, LeaseTTL: DefaultLease, Description: c.Description}
	if c.LeaseTTL != nil {
		k.sub.LeaseTTL = *c.LeaseTTL
	}
	if k.sub.LeaseTTL < MinLease || k.sub.LeaseTTL > MaxLease {
		return k, invalid("lease_ttl_ms must be from %d to %d", MinLease, MaxLease)
	}
	if len(c.Description) > MaxDescription || !utf8.ValidString(c.Description) {
		return k, invalid("description must be at most %d bytes", MaxDescription)
	}
	if err := c.checkMembers(&k, scope); err != nil {
		return k, err
	}
	if err := c.checkDelivery(&k, scope, targets); err != nil {
		return k, err
	}
	k.sub.Hash = hash(&k, scope)
	return k, nil
}

func (c Config) checkMembers(k *checked, scope Scope) (err error) {
	k.sub.Pattern = strings.TrimPrefix(c.Pattern, "/")
	if c.Pattern != "" {
		if k.pattern, err = glob.Parse(k.sub.Pattern); err != nil {
			return invalid("%v", err)
		}
	} else if len(c.Streams) == 0 {
		return invalid("pattern or streams is required")
	}
	k.streams, err = scope.names(c.Streams)
	return err
}

// names reads a list of paths, without repetitions and in order.
func (s Scope) names(paths []string) ([]stream.Name, error) {
	if len(paths) > MaxStreams {
		return nil, invalid("streams must have at most %d elements", MaxStreams)
	}
	names := make([]stream.Name, 0, len(paths))
	for _, p := range paths {
		n, err := s.Name(p)
		if err != nil {
			return nil, err
		}
		names = append(names, n)
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names), nil
}

func compareNames(a, b stream.Name) int {
	if c := strings.Compare(a.Bucket, b.Bucket); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

// checkDelivery takes what belongs to the type; the other type's is ignored.
func (c Config) checkDelivery(k *checked, scope Scope, targets webhook.Targets) (err error) {
	switch c.Type {
	case typeWebhook:
		if c.Webhook == nil || c.Webhook.URL == "" {
			return invalid("a webhook subscription needs webhook.url")
		}
		k.sub.URL = c.Webhook.URL
		return targets.Check(c.Webhook.URL)
	case typePull:
		if c.WakeStream == "" {
			return invalid("a pull-wake subscription needs wake_stream")
		}
		k.sub.Pull = true
		if k.sub.WakeStream, err = scope.Name(c.WakeStream); err != nil {
			return err
		}
		if slices.Contains(k.streams, k.sub.WakeStream) {
			return invalid("a subscription cannot wait for its own wake_stream")
		}
		return nil
	}
	return invalid("type must be %s or %s", typeWebhook, typePull)
}

// hash is of the normalized configuration (B§6.2).
func hash(k *checked, scope Scope) string {
	paths := make([]string, len(k.streams))
	for i, n := range k.streams {
		paths[i] = scope.path(n)
	}
	text, err := json.Marshal([]any{
		k.sub.Pull, k.sub.Pattern, paths, k.sub.URL, k.sub.WakeStream.String(), k.sub.LeaseTTL, k.sub.Description,
	})
	if err != nil {
		panic(err) // strings and numbers
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
