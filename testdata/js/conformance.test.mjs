import { runConformanceTests } from "@durable-streams/server-conformance-tests"
import { configureGlobal } from "fast-check"
import { inject } from "vitest"

const seed = inject(`seed`)
if (seed) configureGlobal({ seed: Number(seed) })

runConformanceTests({
  baseUrl: inject(`url`),
  // The suite allows its long-poll tests this much and a second more.
  longPollTimeoutMs: 39_000,
  subscriptions: inject(`subscriptions`),
})
