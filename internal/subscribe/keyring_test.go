package subscribe_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"firn/internal/subscribe"
	"firn/internal/tiertest/disk"
	"firn/tier/hot"
)

// The signing key survives restarts, is replaced when it is old, and stays published
// for as long as something it signed may be shown.
func TestSigningKeysRotate(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.KeyLife = 240 * time.Hour })
	first := r.JWKS().Keys
	if len(first) != 1 || first[0].Kty != "OKP" || first[0].Crv != "Ed25519" || first[0].Use != "sig" || first[0].Alg != "EdDSA" || !strings.HasPrefix(first[0].Kid, "ds_") {
		t.Fatalf("keys %+v", first)
	}
	r.put("wakes", "")
	r.pull("one", "wakes", "*")
	r.crash()
	if got := r.JWKS().Keys; len(got) != 1 || got[0] != first[0] {
		t.Errorf("after a restart: %+v, before %+v", got, first)
	}
	r.advance(240*time.Hour - time.Millisecond)
	r.put("a", "1")
	r.settle()
	c := r.claim("one")
	if got := r.JWKS().Keys; len(got) != 1 {
		t.Errorf("too early: %+v", got)
	}
	r.advance(time.Millisecond)
	r.until("a second key", func() bool { return len(r.JWKS().Keys) == 2 })
	got := r.JWKS().Keys
	if got[0] == first[0] || got[1] != first[0] {
		t.Errorf("keys %+v", got)
	}
	if kid := r.hook("two", "http://localhost:1", "x").Webhook.Signing.Kid; kid != got[0].Kid {
		t.Errorf("signs with %s, the new key is %s", kid, got[0].Kid)
	}
	if _, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, nil, false)); err != nil {
		t.Errorf("a token of the old key: %v", err)
	}
	r.advance(subscribe.TokenLife * time.Millisecond)
	r.crash()
	if n := len(r.JWKS().Keys); n != 2 {
		t.Errorf("%d keys a day after the rotation, want 2", n)
	}
	r.advance(time.Millisecond)
	r.until("the old key is gone", func() bool { return len(r.JWKS().Keys) == 1 })
	if got2 := r.JWKS().Keys; got2[0] != got[0] {
		t.Errorf("left: %+v", got2)
	}
}

func TestNoKeyWithoutRandomness(t *testing.T) {
	r := newRig(t)
	r.close()
	broken := errors.New("no randomness")
	r.opts.Random = iotest.ErrReader(broken)
	r.start() // has a key
	r.close()
	r.disk = disk.New()
	var err error
	r.hot, err = hot.Open("hot", hot.Options{FS: r.disk.FS(), MemTableBytes: 1 << 20})
	r.must(err)
	r.opts.Hot = r.hot
	_, err = subscribe.Open(bg, r.opts)
	r.is(err, broken, "an engine that cannot make a key")
}
