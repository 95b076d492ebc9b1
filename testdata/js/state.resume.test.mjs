import { readFile } from "node:fs/promises"
import { DurableStream } from "@durable-streams/client"
import { createStateSchema, createStreamDB } from "@durable-streams/state/db"
import { describe, expect, inject, test } from "vitest"
import { cool, definition, rows } from "./streams.mjs"

// The phase before wrote this; the server was killed after its last answer.
const state = JSON.parse(await readFile(`${inject(`state`)}.db`, `utf8`))
const at = (url) => new URL(new URL(url).pathname, inject(`url`)).href
const schema = createStateSchema(definition)

describe.each([`sse`, `long-poll`])(`after the server was killed, by %s`, (live) => {
  test(`collections are what they were, and go on`, async () => {
    const s = new DurableStream({ url: at(state.kept.url), contentType: `application/json` })
    await cool(s)
    const db = createStreamDB({ stream: s, state: schema, live })
    try {
      await db.preload()
      expect(rows(db.collections.users).filter((u) => u.id < `5`)).toEqual(state.kept.outcome.users)
      expect(rows(db.collections.notes)).toEqual(state.kept.outcome.notes)
      const txid = crypto.randomUUID()
      await s.append(JSON.stringify(schema.users.upsert({ value: { id: `9`, name: live }, headers: { txid } })))
      await db.utils.awaitTxId(txid, 20_000)
      expect(db.collections.users.get(`9`).name).toBe(live)
    } finally {
      db.close()
    }
  })

  test(`a state of many pages is whole`, async () => {
    const s = new DurableStream({ url: at(state.many.url), contentType: `application/json` })
    await cool(s)
    const db = createStreamDB({ stream: s, state: schema, live })
    try {
      await db.preload()
      expect(db.offset).toBe(state.many.offset)
      expect(rows(db.collections.notes).length).toBe(20)
      expect(db.collections.notes.get(`n9`).text.endsWith(`x29`)).toBe(true)
    } finally {
      db.close()
    }
  })
})
