#!/usr/bin/env bash
# Installs what the tests need, each in a fixed version, below .cache and testdata/js.
# What is there already is left alone.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$PWD/.cache/bin

# tool MODULE@VERSION PACKAGE: a Go program.
tool() {
  local have
  have=$(go version -m "$bin/${2##*/}" 2>/dev/null | awk '$1 == "mod" { print $2 "@" $3 }') || true
  [ "$have" = "$1" ] && return
  echo "installing $1"
  CGO_ENABLED=0 GOBIN=$bin go install -trimpath -ldflags='-s -w' "$2@${1##*@}"
}

mkdir -p "$bin"
tool honnef.co/go/tools@v0.8.2 honnef.co/go/tools/cmd/staticcheck
tool gotest.tools/gotestsum@v1.13.0 gotest.tools/gotestsum
tool github.com/versity/versitygw@v1.8.0 github.com/versity/versitygw/cmd/versitygw

if ! command -v npm >/dev/null; then
  echo "npm is missing: install Node.js 20 or newer" >&2
  exit 1
fi
if ! [ testdata/js/node_modules/.installed -nt testdata/js/package-lock.json ]; then
  (cd testdata/js && npm ci && touch node_modules/.installed)
fi

if ! command -v zstd >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "zstd is missing: install the package zstd (Debian: apt-get install zstd)" >&2
    exit 1
  fi
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends zstd
fi
