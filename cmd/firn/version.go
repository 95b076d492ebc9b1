package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// versionCommand is `firn version`.
type versionCommand struct{ output }

type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Time     string `json:"time"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Run prints what the Go tool recorded when it built this program.
func (c *versionCommand) Run(i *invocation) error {
	v := version{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if b, ok := debug.ReadBuildInfo(); ok {
		v.Version = b.Main.Version
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.time":
				v.Time = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return c.print(i.stdout, v, func(w io.Writer) {
		fmt.Fprintf(w, "firn %s, %s, %s\n", v.Version, v.Go, v.Platform)
		if v.Revision != "" {
			fmt.Fprintf(w, "revision %s of %s\n", v.Revision, v.Time)
		}
	})
}
