package main

import (
	"os"

	"github.com/alecthomas/kong"

	"firn/internal/config"
)

// settings are the flags of a command that takes the server's configuration.
type settings struct {
	File string `name:"config" placeholder:"FILE" help:"Read settings from this YAML file."`
	kong.Plugins

	flags *config.Flags
}

func (s *settings) bind() {
	s.flags = config.NewFlags()
	s.Plugins = kong.Plugins{s.flags.Struct()}
}

func (s *settings) load(environ []string) (config.Config, config.Origins, error) {
	return config.Load(config.Sources{
		File: s.File, Environ: environ, Flags: s.flags.Values(), ReadFile: os.ReadFile,
	})
}

// configCommand is `firn config`.
type configCommand struct{ settings }

// Run prints the settings as a file that can be loaded again.
func (c *configCommand) Run(i *invocation) error {
	conf, origins, err := c.load(i.environ)
	if err != nil {
		return err
	}
	return config.Print(i.stdout, conf, origins)
}
