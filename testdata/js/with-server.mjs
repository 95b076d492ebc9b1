// with-server.mjs COMMAND [ARG...]: runs a command with the URL of a firn of its own as its last
// argument, and ends with the command's status.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Server } from "./server.mjs"

const [command, ...args] = process.argv.slice(2)
const firn = process.env.FIRN_BINARY ?? fileURLToPath(new URL(`../../firn`, import.meta.url))

process.exitCode = await Server.with({ firn, flags: [`--live.long-poll-timeout=25s`] }, async ({ url }) => {
  const [code] = await once(spawn(command, [...args, url], { stdio: `inherit` }), `exit`)
  return code ?? 1
})
