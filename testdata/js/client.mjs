// Drives the official client over a crash of the server; see README.md.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { readOptions } from "./options.mjs"
import { Server } from "./server.mjs"
import { conclude, runSuite } from "./suite.mjs"

const options = readOptions({
  phase: { type: `string` },
  cold: { type: `boolean`, default: false },
  state: { type: `string` },
})

const total = { passed: 0, failed: 0 }

/** Runs one phase on each surface. What `resume` needs to know is in the state files. */
async function run(phase, url, state, admin) {
  for (const [i, prefix] of options.prefix.entries()) {
    console.log(`client on ${prefix}: ${phase}`)
    const { passed, failed } = await runSuite({
      file: `*.${phase}.test.mjs`,
      url,
      prefix,
      filter: options.filter,
      provide: { state: `${state}.${i}`, admin },
    })
    total.passed += passed
    total.failed += failed
  }
}

async function crashBetweenPhases(server) {
  const dir = await mkdtemp(join(tmpdir(), `firn-client-`))
  try {
    const state = join(dir, `state`)
    for (const phase of [`write`, `resume`]) {
      await run(phase, server.url, state, options.cold ? await server.admin : undefined)
      await server.kill()
      await server.start()
    }
  } finally {
    await rm(dir, { recursive: true })
  }
}

try {
  if (!options.url) await Server.with(options, crashBetweenPhases)
  else if (options.phase && options.state) await run(options.phase, options.url, options.state)
  else throw new Error(`--url needs --phase and --state`)
} catch (err) {
  console.log(err)
  total.failed++
}
conclude(total)
