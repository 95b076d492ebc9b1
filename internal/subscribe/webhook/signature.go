package webhook

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
)

// Key signs requests (B§7.1).
type Key struct {
	// ID is derived from the public key (RFC 7638), so it names no other.
	ID      string
	private ed25519.PrivateKey
	x       string // the public key, base64url
}

// JWK is a public key as receivers look it up (B§6.5).
type JWK struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	Kid string `json:"kid"`
	Use string `json:"use"`
	Alg string `json:"alg"`
	X   string `json:"x"`
}

// NewKey derives a key from a seed of 32 secret bytes.
func NewKey(seed []byte) (*Key, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("derive signing key: the seed has %d bytes, want %d", len(seed), ed25519.SeedSize)
	}
	k := &Key{private: ed25519.NewKeyFromSeed(seed)}
	k.x = base64.RawURLEncoding.EncodeToString(k.private.Public().(ed25519.PublicKey))
	thumbprint := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + k.x + `"}`))
	k.ID = "ds_" + base64.RawURLEncoding.EncodeToString(thumbprint[:])
	return k, nil
}

// JWK is the public half.
func (k *Key) JWK() JWK {
	return JWK{Kty: "OKP", Crv: "Ed25519", Kid: k.ID, Use: "sig", Alg: "EdDSA", X: k.x}
}

// Sign returns the Webhook-Signature of a body that is sent at a time.
func (k *Key) Sign(at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	signature := ed25519.Sign(k.private, append([]byte(t+"."), body...))
	return "t=" + t + ",kid=" + k.ID + ",ed25519=" + base64.RawURLEncoding.EncodeToString(signature)
}
