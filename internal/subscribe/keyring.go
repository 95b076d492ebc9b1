package subscribe

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"firn/internal/subscribe/webhook"
	"firn/tier/hot"
)

// keyLinger is how long a retired key is published and its tokens are accepted, in ms:
// the life of a token, and far longer than receivers accept old requests.
const keyLinger = tokenLife

// keyring holds the signing keys of the catalog.
type keyring struct {
	store  *hot.Store
	random io.Reader
	// life is the age at which a key is replaced, in ms; 0 is never.
	life uint64

	mu      sync.Mutex
	keys    []ringKey // oldest first; the last one is active
	secrets [][]byte  // newest first
}

type ringKey struct {
	hot.SigningKey
	signer *webhook.Key
}

func openKeyring(ctx context.Context, store *hot.Store, random io.Reader, life time.Duration) (*keyring, error) {
	k := &keyring{store: store, random: random, life: uint64(life.Milliseconds())}
	if err := k.load(); err != nil {
		return nil, err
	}
	return k, k.maintain(ctx)
}

func (k *keyring) load() error {
	v := k.store.View()
	defer v.Close()
	stored, err := v.SigningKeys()
	if err != nil {
		return fmt.Errorf("read signing keys: %w", err)
	}
	keys := make([]ringKey, 0, len(stored))
	var secrets [][]byte
	for _, s := range stored {
		signer, err := webhook.NewKey(s.Seed)
		if err != nil {
			return fmt.Errorf("signing key %d: %w", s.Number, err)
		}
		secret, err := tokenSecret(s.Seed)
		if err != nil {
			return err
		}
		keys, secrets = append(keys, ringKey{s, signer}), append(secrets, secret)
	}
	slices.Reverse(secrets)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keys, k.secrets = keys, secrets
	return nil
}

// maintain makes the first key, replaces one that has grown old and forgets those that
// nothing was signed with for long.
func (k *keyring) maintain(ctx context.Context) error {
	now, changed := k.store.Now(), false
	if active, ok := k.active(); !ok || k.life > 0 && active.CreatedAt+k.life <= now {
		seed := make([]byte, ed25519.SeedSize)
		if _, err := io.ReadFull(k.random, seed); err != nil {
			return fmt.Errorf("make signing key: %w", err)
		}
		err := k.store.AddSigningKey(ctx, hot.AddSigningKey{Replaces: active.Number, Seed: seed})
		if err != nil && !errors.Is(err, hot.ErrConflict) {
			return fmt.Errorf("add signing key: %w", err)
		}
		changed = true
	}
	if oldest := k.oldest(); now > keyLinger && oldest.RetiredAt != 0 && oldest.RetiredAt < now-keyLinger {
		if err := k.store.DropSigningKeys(ctx, now-keyLinger); err != nil {
			return fmt.Errorf("drop signing keys: %w", err)
		}
		changed = true
	}
	if changed {
		return k.load()
	}
	return nil
}

func (k *keyring) active() (ringKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) == 0 {
		return ringKey{}, false
	}
	return k.keys[len(k.keys)-1], true
}

func (k *keyring) oldest() ringKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.keys) == 0 {
		return ringKey{}
	}
	return k.keys[0]
}

// signer is the active key.
func (k *keyring) signer() *webhook.Key {
	active, _ := k.active()
	return active.signer
}

// public is the keys that receivers may meet, the active one first.
func (k *keyring) public() []webhook.JWK {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]webhook.JWK, 0, len(k.keys))
	for _, key := range slices.Backward(k.keys) {
		list = append(list, key.signer.JWK())
	}
	return list
}

// token is what the holder of a wake shows.
func (k *keyring) token(s *hot.Subscription) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return newToken(k.secrets[0], claims{
		Subscription: s.Number, Generation: s.Generation, Expires: (k.store.Now() + tokenLife) / 1000,
	})
}

// read returns the generation that a token of a subscription is of. Errors:
// [ErrToken], [ErrTokenExpired].
func (k *keyring) read(subscription uint64, token string) (generation uint64, err error) {
	k.mu.Lock()
	secrets := k.secrets
	k.mu.Unlock()
	c, err := readToken(secrets, token)
	switch {
	case err != nil:
		return 0, err
	case c.Subscription != subscription:
		return 0, ErrToken
	case c.Expires <= k.store.Now()/1000:
		return 0, ErrTokenExpired
	}
	return c.Generation, nil
}
