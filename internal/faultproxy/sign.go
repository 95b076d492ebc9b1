package faultproxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// sign replaces the signature (AWS, version 4) of a request whose header was changed.
// The fields that were signed are signed again, as far as they are there.
func (p *Proxy) sign(r *http.Request) {
	fields := map[string]string{}
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	for f := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(f), "=")
		fields[name] = value
	}
	_, scope, _ := strings.Cut(fields["Credential"], "/")
	date := r.Header.Get("X-Amz-Date")
	signed := slices.DeleteFunc(strings.Split(fields["SignedHeaders"], ";"), func(name string) bool {
		return value(r, name) == ""
	})
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.URL.EscapedPath() + "\n" + query(r.URL) + "\n")
	for _, name := range signed {
		canonical.WriteString(name + ":" + value(r, name) + "\n")
	}
	canonical.WriteString("\n" + strings.Join(signed, ";") + "\n" + r.Header.Get("X-Amz-Content-Sha256"))
	sum := sha256.Sum256([]byte(canonical.String()))
	key := []byte("AWS4" + p.opts.SecretKey)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	signature := mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(sum[:]))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+p.opts.AccessKey+"/"+scope+
		", SignedHeaders="+strings.Join(signed, ";")+", Signature="+hex.EncodeToString(signature))
}

func value(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		if v := r.Header.Get(name); v != "" {
			return v
		}
	}
	return strings.TrimSpace(strings.Join(r.Header.Values(name), ","))
}

// query is in the order that is signed.
func query(u *url.URL) string {
	return strings.ReplaceAll(u.Query().Encode(), "+", "%20")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
