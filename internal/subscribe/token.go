package subscribe

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// tokenLife is how long a token is good at most, in ms. The lease of its wake ends it
// earlier unless it is extended.
const tokenLife = 24 * 60 * 60 * 1000

// claims are what a token says (B§12.9). The number, not the id, names the
// subscription: a successor of the name has another.
type claims struct {
	Subscription uint64 `json:"sub"`
	Generation   uint64 `json:"gen"`
	Expires      uint64 `json:"exp"` // seconds since 1970
}

// tokenHeader is that of all tokens: no other algorithm is ever accepted.
var tokenHeader = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))

// tokenSecret derives the secret of tokens from a signing key's seed.
func tokenSecret(seed []byte) ([]byte, error) {
	secret, err := hkdf.Key(sha256.New, seed, nil, "firn subscription tokens", sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive token secret: %w", err)
	}
	return secret, nil
}

// newToken signs claims.
func newToken(secret []byte, c claims) string {
	body, err := json.Marshal(c)
	if err != nil {
		panic(err) // numbers
	}
	text := tokenHeader + "." + base64.RawURLEncoding.EncodeToString(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(tokenMAC(secret, text))
}

func tokenMAC(secret []byte, text string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// readToken returns the claims of a token that one of the secrets has signed. Errors:
// [ErrToken].
func readToken(secrets [][]byte, token string) (claims, error) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 || !strings.HasPrefix(token, tokenHeader+".") {
		return claims{}, ErrToken
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(token[i+1:])
	if err != nil {
		return claims{}, ErrToken
	}
	for _, secret := range secrets {
		if !hmac.Equal(mac, tokenMAC(secret, token[:i])) {
			continue
		}
		body, err := base64.RawURLEncoding.DecodeString(token[len(tokenHeader)+1 : i])
		var c claims
		if err != nil || json.Unmarshal(body, &c) != nil {
			return claims{}, ErrToken
		}
		return c, nil
	}
	return claims{}, ErrToken
}
