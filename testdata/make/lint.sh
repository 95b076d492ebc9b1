#!/usr/bin/env bash
# Formatting, vet, staticcheck and the project's own rules, over all Go code. Nothing is exempt.
set -euo pipefail
cd "$(dirname "$0")/../.."

unformatted=$(find . -name '*.go' -not -path './.cache/*' -not -path '*/node_modules/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
  printf 'gofmt would change:\n%s\n' "$unformatted" >&2
  exit 1
fi
staticcheck=.cache/bin/staticcheck
if ! [ -x "$staticcheck" ]; then
  echo "staticcheck is missing: make tools" >&2
  exit 1
fi
for tags in '' integration; do
  go vet -tags="$tags" ./...
  "$staticcheck" -tags="$tags" ./...
done
go test ./internal/lint
