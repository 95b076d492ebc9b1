// Runs the Durable Streams conformance suite; see README.md.
import { readOptions } from "./options.mjs"
import { Server } from "./server.mjs"
import { conclude, runSuite } from "./suite.mjs"

const options = readOptions({
  subscriptions: { type: `boolean`, default: false },
  seed: { type: `string` },
})

const total = { passed: 0, failed: 0 }

async function run(url) {
  for (const prefix of options.prefix) {
    // Subscriptions need stream ids with a slash, which a bucket's ids cannot hold.
    const subscriptions = options.subscriptions && !prefix.startsWith(`/ds/`)
    console.log(`conformance suite on ${prefix}${subscriptions ? `, with subscriptions` : ``}`)
    const { passed, failed } = await runSuite({
      file: `conformance.test.mjs`,
      url,
      prefix,
      filter: options.filter,
      provide: { subscriptions, seed: options.seed },
    })
    console.log(`${prefix}: ${passed} of ${passed + failed}`)
    total.passed += passed
    total.failed += failed
  }
}

try {
  if (options.url) await run(options.url)
  else await Server.with(options, (server) => run(server.url))
} catch (err) {
  console.log(err)
  total.failed++
}
conclude(total)
