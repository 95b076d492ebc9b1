package webhook

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Targets says which receivers webhooks may be sent to (B§6.2, B§12.8).
type Targets uint8

const (
	// Public: https, to addresses of the public internet.
	Public Targets = iota
	// Localhost: also http or https to localhost and 127.0.0.x, for development.
	Localhost
	// Private: also http, and addresses of private networks and of this machine.
	Private
)

// MaxURL bounds the length of a URL in bytes.
const MaxURL = 2048

// ErrTarget: a receiver that webhooks are not sent to.
var ErrTarget = errors.New("webhook URL is not allowed")

// Check refuses a URL that no delivery may go to: [ErrTarget]. What a name resolves to
// is checked when a connection is made.
func (t Targets) Check(raw string) error {
	_, err := t.parse(raw)
	return err
}

// parse returns the URL with its way: local is one to localhost by name or number.
func (t Targets) parse(raw string) (local bool, err error) {
	if len(raw) > MaxURL {
		return false, fmt.Errorf("%w: it is longer than %d bytes", ErrTarget, MaxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return false, fmt.Errorf("%w: it is malformed", ErrTarget)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, notAddress := netip.ParseAddr(host)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return false, fmt.Errorf("%w: its scheme is not https", ErrTarget)
	case host == "" || u.Opaque != "":
		return false, fmt.Errorf("%w: it has no host", ErrTarget)
	case u.User != nil || u.Fragment != "":
		return false, fmt.Errorf("%w: it has credentials or a fragment", ErrTarget)
	case notAddress != nil && numeric(host):
		return false, fmt.Errorf("%w: its address is misspelt", ErrTarget)
	}
	local = t >= Localhost && isLocalhost(host)
	if u.Scheme == "http" && !local && t < Private {
		return false, fmt.Errorf("%w: its scheme is not https", ErrTarget)
	}
	if notAddress == nil && !t.permits(addr, local) || !local && t < Private && isLocalName(host) {
		return false, fmt.Errorf("%w: its address is not public", ErrTarget)
	}
	return local, nil
}

// numeric reports whether a host is a number, or ends in one: resolvers take 2130706433,
// 0x7f.1 and 127.1 for addresses, and no name is like that.
func numeric(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := strconv.ParseUint(last, 0, 64)
	return err == nil || strings.Trim(last, "0123456789") == ""
}

// isLocalName reports whether a name is of this machine (RFC 6761 §6.3).
func isLocalName(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

var localhost = netip.MustParsePrefix("127.0.0.0/24")

func isLocalhost(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && localhost.Contains(addr)
}

// permits reports whether a connection may be made to an address, by the way of a URL.
func (t Targets) permits(addr netip.Addr, local bool) bool {
	if addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	switch {
	case local:
		return addr.IsLoopback()
	case t == Private && (addr.IsLoopback() || addr.IsPrivate()):
		return true
	}
	return isPublic(addr)
}

// special are the networks that lead elsewhere than to one host of the internet, beside
// those that netip knows. IPv6 is public in 2000::/3 alone.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // Teredo among them
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4: an IPv4 address in disguise
}

var global6 = netip.MustParsePrefix("2000::/3")

func isPublic(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Is6() && !global6.Contains(a) {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}
