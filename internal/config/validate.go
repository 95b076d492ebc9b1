package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Resolved fills in what depends on other settings: hot.hard_bytes becomes twice
// hot.max_bytes, cold.url the directory cold in the data directory,
// subscriptions.targets what listen allows. [Load] returns resolved configurations.
func (c Config) Resolved() Config {
	if c.Hot.HardBytes == 0 {
		c.Hot.HardBytes = 2 * c.Hot.MaxBytes
	}
	if c.Cold.URL.Kind == ColdDefault {
		c.Cold.URL = ColdURL{Kind: ColdFile, Path: filepath.Join(c.DataDir, "cold")}
	}
	if c.Subscriptions.Targets == "auto" {
		c.Subscriptions.Targets = "public"
		if host, _, err := splitAddress(c.Listen); err == nil && loopback(host) {
			c.Subscriptions.Targets = "localhost"
		}
	}
	return c
}

// Validate returns everything that is wrong with the configuration as [Problems],
// an [ErrInvalid].
func (c Config) Validate() error { return c.problems().err() }

func (c Config) problems() Problems {
	var p Problems
	for _, s := range declared().settings() {
		if err := s.check(s.in(&c)); err != nil {
			p = append(p, Problem{Paths: []string{s.path}, Message: err.Error()})
		}
	}
	bad := make(map[string]bool)
	for _, problem := range p {
		bad[problem.Paths[0]] = true
	}
	for _, problem := range c.Resolved().conflicts() {
		// What is wrong by itself says nothing about how it goes with others.
		if !slices.ContainsFunc(problem.Paths, func(path string) bool { return bad[path] }) {
			p = append(p, problem)
		}
	}
	return p
}

// conflicts finds what single settings cannot tell. It is given a resolved
// configuration.
func (c Config) conflicts() Problems {
	var p Problems
	refuse := func(message string, paths ...string) {
		p = append(p, Problem{Paths: paths, Message: message})
	}
	atLeast := func(path string, v Bytes, floorPath string, floor Bytes, hint string) {
		if v < floor {
			refuse(fmt.Sprintf("%v is smaller than %s (%v): %s", v, floorPath, floor, hint), path, floorPath)
		}
	}
	c.checkListeners(refuse)
	c.checkFiles(refuse)
	c.checkOrigins(refuse)
	atLeast("hot.max_bytes", c.Hot.MaxBytes, "seal.target_bytes", c.Seal.TargetBytes,
		"the budget has to hold a segment; raise the one or lower the other")
	atLeast("hot.hard_bytes", c.Hot.HardBytes, "hot.max_bytes", c.Hot.MaxBytes,
		"appends would be refused within the budget; raise it, or set it to 0 for twice the budget")
	atLeast("read.memory_bytes", c.Read.MemoryBytes, "read.max_bytes", c.Read.MaxBytes,
		"one answer would take it all; raise the one or lower the other")
	atLeast("bootstrap.memory_bytes", c.Bootstrap.MemoryBytes, "bootstrap.max_bytes", c.Bootstrap.MaxBytes,
		"no bootstrap could be answered; raise the one or lower the other")
	atLeast("limits.inflight_bytes", c.Limits.InflightBytes, "limits.append_bytes", c.Limits.AppendBytes,
		"the largest append could never be taken; raise the one or lower the other")
	if c.Live.SSEHeartbeat > c.Live.SSEMaxAge {
		refuse(fmt.Sprintf("%v is longer than live.sse_max_age (%v): no heartbeat would ever be sent; lower it", c.Live.SSEHeartbeat, c.Live.SSEMaxAge),
			"live.sse_heartbeat", "live.sse_max_age")
	}
	return p
}

type refuseFunc func(message string, paths ...string)

func (c Config) checkListeners(refuse refuseFunc) {
	if strings.ContainsFunc(string(c.Admin.Token), func(r rune) bool { return r <= ' ' || r > '~' }) {
		refuse("holds white space or characters that cannot be sent in a header: use letters and digits", "admin.token")
	}
	host, port, err := splitAddress(c.Listen)
	if err != nil {
		refuse(err.Error(), "listen")
	}
	adminHost, adminPort, adminErr := splitAddress(c.Admin.Listen)
	if adminErr != nil {
		refuse(adminErr.Error(), "admin.listen", "admin.token")
		return
	}
	if err == nil && host == adminHost && port == adminPort && port != 0 {
		refuse("is the same address as listen: give it another port", "admin.listen", "listen")
	}
	if !loopback(adminHost) && c.Admin.Token == "" {
		refuse(fmt.Sprintf("%s can be reached by other machines and there is no admin.token: set one (or admin.token_file), or listen on 127.0.0.1",
			c.Admin.Listen), "admin.listen", "admin.token")
	}
}

func splitAddress(address string) (host string, port int, err error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not of the form host:port, as in 127.0.0.1:4437", address)
	}
	port, err = strconv.Atoi(portText)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q has no port between 0 and 65535 (0 is any free one)", address)
	}
	return host, port, nil
}

// loopback takes names other than localhost for reachable: what they resolve to
// may change.
func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

func (c Config) checkFiles(refuse refuseFunc) {
	if c.DataDir == "" {
		refuse("is empty: name a directory", "data_dir")
	}
	if c.TLS.CertFile != "" && c.TLS.KeyFile == "" {
		refuse("is not set but tls.cert_file is: name the certificate's key too", "tls.key_file", "tls.cert_file")
	}
	if c.TLS.KeyFile != "" && c.TLS.CertFile == "" {
		refuse("is not set but tls.key_file is: name the key's certificate too", "tls.cert_file", "tls.key_file")
	}
	if c.Cold.AccessKeyID != "" && c.Cold.SecretAccessKey == "" {
		refuse("is not set but cold.access_key_id is: set both or none", "cold.secret_access_key", "cold.access_key_id")
	}
	if c.Cold.SecretAccessKey != "" && c.Cold.AccessKeyID == "" {
		refuse("is not set but cold.secret_access_key is: set both or none", "cold.access_key_id", "cold.secret_access_key")
	}
	if c.Cold.URL.Kind == ColdFile && c.DataDir != "" && within(c.Cold.URL.Path, filepath.Join(c.DataDir, "hot")) {
		refuse(fmt.Sprintf("%s is inside the hot tier's directory: choose one of its own", c.Cold.URL.Path), "cold.url", "data_dir")
	}
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func (c Config) checkOrigins(refuse refuseFunc) {
	for _, origin := range c.HTTP.CORSOrigins {
		if origin == "*" {
			if len(c.HTTP.CORSOrigins) > 1 {
				refuse("holds * beside other origins: * is all of them already", "http.cors_origins")
			}
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			refuse(fmt.Sprintf("%q is not an origin: write it as in https://app.example, without a path", origin), "http.cors_origins")
		}
	}
}
