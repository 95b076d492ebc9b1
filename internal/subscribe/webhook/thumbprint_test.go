package webhook_test

import (
	"crypto/ed25519"
	"testing"

	"firn/internal/subscribe/webhook"
)

// The id of a key is made of the key alone, by RFC 7638: it is the same wherever and
// whenever the key is used, and no other key has it (B§6.5). The values were computed
// with other software.
func TestKeyIDIsTheThumbprint(t *testing.T) {
	for first, want := range map[byte]string{
		0: "ds_9ZP03Nu8GrXPAUkbKNxHOKBzxPX83SShgFkRNK-f2lw",
		1: "ds_ztbkwUTj3EykAmV-cJTL2mji0UARaMUmW7XIbMNOrro",
	} {
		seed := make([]byte, ed25519.SeedSize)
		seed[0] = first
		for range 2 {
			k, err := webhook.NewKey(seed)
			if err != nil {
				t.Fatal(err)
			}
			if k.ID != want || k.JWK().Kid != want {
				t.Errorf("seed %d: id %s, published as %s, want %s", first, k.ID, k.JWK().Kid, want)
			}
		}
	}
}
