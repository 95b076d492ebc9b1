// Command gendoc writes docs/configuration.md from the declarations of
// internal/config. Without an argument it writes to standard output.
package main

import (
	"bytes"
	"fmt"
	"os"

	"firn/internal/config"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gendoc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var b bytes.Buffer
	if err := config.Document(&b); err != nil {
		return err
	}
	if len(args) == 0 {
		_, err := os.Stdout.Write(b.Bytes())
		return err
	}
	return os.WriteFile(args[0], b.Bytes(), 0o644)
}
