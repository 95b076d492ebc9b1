import { fileURLToPath } from "node:url"
import { startVitest } from "vitest/node"
import { answering } from "./server.mjs"

const root = fileURLToPath(new URL(`.`, import.meta.url))

/**
 * Runs one test file against the surface at url + prefix and returns the counts
 * of passed and failed tests. `provide` reaches the file through vitest's inject.
 */
export async function runSuite({ file, url, prefix, filter, provide = {} }) {
  // Against a dead server the clients under test would try again for ever.
  await answering(url)
  await makeBucket(url, prefix)
  const vitest = await startVitest(`test`, [], {
    root,
    config: false,
    watch: false,
    include: [file],
    testNamePattern: filter,
    // Longer than a server may hold a long-poll by default.
    testTimeout: 40_000,
    hookTimeout: 40_000,
    reporters: [`default`],
    provide: { url, prefix, ...provide },
    server: { deps: { inline: [/server-conformance-tests/] } },
  }, { plugins: [atPrefix(prefix)] })
  const counts = { passed: 0, failed: 0 }
  for (const module of vitest.state.getTestModules()) {
    // A file that cannot be loaded has no tests and must not pass for that.
    counts.failed += module.errors().length
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === `passed`) counts.passed++
      if (state === `failed`) {
        counts.failed++
        console.log(`FAILED  ${prefix}  ${test.fullName}`)
      }
    }
  }
  counts.failed += vitest.state.getUnhandledErrors().length
  await vitest.close()
  return counts
}

/** Prints the closing line and sets the exit status. */
export function conclude({ passed, failed }) {
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1
}

/** The bucket of a bucketed surface must exist before its streams. */
async function makeBucket(url, prefix) {
  const [, bucket] = prefix.match(/^\/ds\/([^/]+)\/$/) ?? []
  if (!bucket) return
  const answer = await fetch(`${url}/ds/${bucket}`, { method: `PUT` })
  if (answer.status !== 201 && answer.status !== 409) {
    throw new Error(`create bucket ${bucket}: ${answer.status} ${await answer.text()}`)
  }
}

/** The conformance suite knows one surface only; its paths are rewritten as it loads. */
function atPrefix(prefix) {
  return {
    name: `stream-prefix`,
    enforce: `pre`,
    transform(code, id) {
      if (!/server-conformance-tests\/dist\//.test(id)) return null
      return { code: code.replaceAll(`/v1/stream/`, prefix), map: null }
    },
  }
}
