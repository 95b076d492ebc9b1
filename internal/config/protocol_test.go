package config_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"firn/internal/config"
)

// What the protocol recommends of a server is so without configuration: its port, the
// age of an event stream, caches that keep nothing for others. And only this machine
// reaches a server that nobody has configured.
func TestDefaultsOfTheProtocol(t *testing.T) {
	c := config.Default()
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		t.Fatal(err)
	}
	if addr, err := netip.ParseAddr(host); err != nil || !addr.IsLoopback() || port != "4437" {
		t.Errorf("listens on %s", c.Listen)
	}
	if age := time.Duration(c.Live.SSEMaxAge); age != time.Minute {
		t.Errorf("an event stream ends after %v", age)
	}
	if c.HTTP.CachePublic || len(c.HTTP.TrustedProxies) != 0 {
		t.Errorf("unexpected defaults: %+v", c.HTTP)
	}
}
