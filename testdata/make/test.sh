#!/usr/bin/env bash
# Runs the given make targets one after another, all of them even if one fails, within
# LIMIT seconds together. Closes with a line for each and the totals, "N passed, N failed":
# a target that counts its tests adds those, any other adds one.
set -uo pipefail
cd "$(dirname "$0")/../.."
logs=.cache/test
limit=${LIMIT:-1700}
passed=0 failed=0 summary=
export GOTEST='.cache/bin/gotestsum --format pkgname-and-test-fails --'

# count LOG: the passed and the failed tests that a log closes with.
count() {
  awk '
    / passed, [0-9]+ failed$/ { p = $(NF - 3); f = $(NF - 1); seen = 1 }
    /^DONE [0-9]+ tests?/ {
      p = $2; f = 0; seen = 1
      for (i = 3; i < NF; i++) {
        if ($(i + 1) ~ /^skipped/) p -= $i
        if ($(i + 1) ~ /^failure/) { p -= $i; f += $i }
        if ($(i + 1) ~ /^error/) f += $i
      }
    }
    END { if (seen) print p, f }' "$1"
}

mkdir -p "$logs"
for target in "$@"; do
  echo "== $target"
  log=$logs/$target.log
  begun=$SECONDS
  left=$((limit - SECONDS))
  # timeout gives the target a process group of its own and ends all of it.
  timeout --kill-after=20 "$((left > 1 ? left : 1))" make --no-print-directory "$target" </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  read -r p f <<<"$(count "$log")" || true
  [ -n "$p" ] || { p=$((status == 0)); f=0; }
  # Neither a failure without a failed test nor a success without a test may go unseen.
  if [ "$f" = 0 ] && { [ "$status" != 0 ] || [ "$p" = 0 ]; }; then f=1; fi
  passed=$((passed + p)) failed=$((failed + f))
  summary+=$(printf '%-6s %-12s %5d s  %d passed, %d failed' "$([ "$f" = 0 ] && echo ok || echo FAILED)" "$target" $((SECONDS - begun)) "$p" "$f")$'\n'
done
printf '\n%s\n%d passed, %d failed\n' "$summary" "$passed" "$failed"
[ "$failed" = 0 ]
