// Colours would only clutter the logs of a build.
process.env.NO_COLOR = `1`
delete process.env.FORCE_COLOR

import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"

export const surfaces = [`/v1/stream/`, `/ds/conf/`]

/** Reads the command line that both drivers share; `extra` adds to it. */
export function readOptions(extra = {}) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      url: { type: `string` },
      prefix: { type: `string`, multiple: true, default: surfaces },
      filter: { type: `string` },
      firn: { type: `string`, default: fileURLToPath(new URL(`../../firn`, import.meta.url)) },
      ...extra,
    },
  })
  for (const prefix of values.prefix) {
    if (!/^\/.*\/$/.test(prefix)) throw new Error(`prefix ${prefix} must begin and end with a slash`)
  }
  // What follows `--` is for the server.
  values.flags = [`--live.long-poll-timeout=500ms`, ...positionals]
  values.url = values.url?.replace(/\/$/, ``)
  return values
}
