package config

import (
	"maps"
	"slices"
	"strings"
)

const (
	envPrefix = "FIRN_"
	// envConfig names the file; it is no setting.
	envConfig = envPrefix + "CONFIG"
	// EnvURL and EnvAdminURL tell the commands that ask a running server where it
	// is. They mean nothing to the server, which may see them all the same.
	EnvURL      = envPrefix + "URL"
	EnvAdminURL = envPrefix + "ADMIN_URL"
)

// environ turns environment variables into assignments, and returns the value of
// FIRN_CONFIG beside them.
func (l *loader) environ(environ []string) (source []assignment, configFile string) {
	byName := make(map[string]spelling)
	for path, s := range l.spellings {
		byName[envName(path)] = s
	}
	values := make(map[string]string)
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, envPrefix) {
			values[name] = value
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		s, ok := byName[name]
		switch {
		case ok:
			source = append(source, assignment{spelling: s, items: s.split(values[name]), origin: name})
		case name == envConfig:
			configFile = values[name]
		case foreign(name):
		default:
			l.refuse(name, "", "there is no such setting"+didYouMean(name, slices.Sorted(maps.Keys(byName))))
		}
	}
	return source, configFile
}

// foreign recognises variables that are no settings, but no mistakes either.
func foreign(name string) bool { return name == EnvURL || name == EnvAdminURL || serviceLink(name) }

// serviceLink recognises the variables that Kubernetes puts into every container
// when a service is named firn. Nobody meant them for us.
func serviceLink(name string) bool {
	return name == "FIRN_PORT" || strings.HasPrefix(name, "FIRN_PORT_") || strings.HasPrefix(name, "FIRN_SERVICE_")
}
