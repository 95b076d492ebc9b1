// The state protocol's package over the server: change events in, collections out.
import { writeFile } from "node:fs/promises"
import {
  MaterializedState, createLiveQueryCollection, createStateSchema, createStreamDB, isChangeEvent, isControlEvent,
} from "@durable-streams/state/db"
import { afterAll, describe, expect, inject, test, vi } from "vitest"
import { cool, createStream, definition, follow, newURL, readJSON, rows } from "./streams.mjs"

// What the next phase checks after the server has been killed and started again.
const state = {}
afterAll(() => writeFile(`${inject(`state`)}.db`, JSON.stringify(state)))

const schema = createStateSchema(definition)
const { users, notes } = schema
const send = (s, ...events) => Promise.all(events.map((e) => s.append(JSON.stringify(e))))

async function open(s, options = {}) {
  const db = createStreamDB({ streamOptions: { url: s.url, contentType: `application/json` }, state: schema, ...options })
  await db.preload()
  return db
}

const history = [
  users.insert({ value: { id: `1`, name: `Änne` } }),
  notes.insert({ value: { id: `a`, text: `one` }, headers: { txid: `t1`, timestamp: `2026-01-01T00:00:00Z` } }),
  users.upsert({ value: { id: `2`, name: `Bo` } }),
  users.update({ value: { id: `1`, name: `Anna` }, oldValue: { id: `1`, name: `Änne` } }),
  { headers: { control: `snapshot-start` } },
  users.upsert({ value: { id: `2`, name: `Bob` } }),
  { headers: { control: `snapshot-end` } },
  notes.insert({ value: { id: `b`, text: `two` } }),
  notes.delete({ key: `a`, oldValue: { id: `a`, text: `one` } }),
]
const outcome = { users: [{ id: `1`, name: `Anna` }, { id: `2`, name: `Bob` }], notes: [{ id: `b`, text: `two` }] }

test(`events come back as they were made`, async () => {
  const s = await createStream(`events`, `application/json`)
  await send(s, ...history)
  const events = await readJSON(s)
  expect(events).toEqual(JSON.parse(JSON.stringify(history)))
  const changes = events.filter(isChangeEvent)
  expect(changes.length + events.filter(isControlEvent).length).toBe(history.length)
  const made = new MaterializedState()
  made.applyBatch(changes)
  expect(made.types).toEqual([`user`, `note`])
  expect([...made.getType(`user`).values()]).toEqual(outcome.users)
  expect(made.get(`note`, `b`)).toEqual(outcome.notes[0])
  expect(made.get(`note`, `a`)).toBeUndefined()
  expect(() => users.insert({ value: { id: `3` } })).toThrow(/missing/)
})

describe.each([true, `sse`, `long-poll`])(`collections by %s`, (live) => {
  test(`hold what has happened, and what happens`, async () => {
    const s = await createStream(`db-${live}`, `application/json`)
    await send(s, ...history)
    await cool(s)
    const seen = { events: 0, before: 0, after: 0 }
    const db = await open(s, { live, onEvent: () => seen.events++, onBeforeBatch: () => seen.before++, onBatch: () => seen.after++ })
    try {
      const current = () => ({ users: rows(db.collections.users), notes: rows(db.collections.notes) })
      expect(current()).toEqual(outcome)
      expect(seen.events).toBe(history.filter(isChangeEvent).length)
      expect(seen.before).toBe(seen.after)
      expect(db.offset).toBe((await s.head()).offset)
      const named = createLiveQueryCollection({ startSync: true, query: (q) => q.from({ u: db.collections.users }).select(({ u }) => ({ id: u.id, name: u.name })) })
      await named.preload()

      const arrived = db.utils.awaitTxId(`t2`, 20_000)
      await send(s, users.insert({ value: { id: `3`, name: `Cy` }, headers: { txid: `t2` } }))
      await arrived
      expect(current().users.at(-1)).toEqual({ id: `3`, name: `Cy` })
      await vi.waitFor(() => expect(named.toArray.map((u) => u.name).sort()).toEqual([`Anna`, `Bob`, `Cy`]))
    } finally {
      db.close()
    }
  })
})

test(`actions write to the stream and wait for their own event`, async () => {
  const s = await createStream(`actions`, `application/json`)
  const db = await open(s, {
    actions: ({ db, stream }) => ({
      add: {
        onMutate: (user) => db.collections.users.insert(user),
        mutationFn: async (user) => {
          const txid = crypto.randomUUID()
          await stream.append(JSON.stringify(users.insert({ value: user, headers: { txid } })))
          await db.utils.awaitTxId(txid, 20_000)
        },
      },
    }),
  })
  try {
    await db.actions.add({ id: `1`, name: `Ada` }).isPersisted.promise
    expect(rows(db.collections.users)).toEqual([{ id: `1`, name: `Ada` }])
    expect((await readJSON(s)).map((e) => e.key)).toEqual([`1`])
  } finally {
    db.close()
  }
})

// The package's collections cannot be reset (0.3.1: their truncate has no transaction), a state by hand can.
test.each([`sse`, `long-poll`])(`a reset begins anew, by %s`, async (live) => {
  const s = await createStream(`reset-${live}`, `application/json`)
  await send(s, ...history)
  await cool(s)
  const made = new MaterializedState()
  let told = false
  const apply = (event) => {
    if (isChangeEvent(event)) made.apply(event)
    else if (event.headers.control === `reset`) made.clear()
  }
  await follow(s, {
    live,
    done: (items, batch) => {
      if (batch.upToDate && !told) {
        items.forEach(apply)
        expect([...made.getType(`user`).values()]).toEqual(outcome.users)
        told = items.length
      }
      return items.length >= history.length + 2
    },
    onCaughtUp: () => send(s, { headers: { control: `reset` } }, users.insert({ value: { id: `9`, name: `New` } })),
  }).then(({ items }) => items.slice(told).forEach(apply))
  expect(made.types).toEqual([`user`])
  expect([...made.getType(`user`).values()]).toEqual([{ id: `9`, name: `New` }])
})

test(`a state of many pages`, async () => {
  const s = await createStream(`many`, `application/json`)
  const text = `x`.repeat(4000)
  for (let i = 0; i < 30; i++) {
    await s.append(JSON.stringify(notes.upsert({ value: { id: `n${i % 20}`, text: `${text}${i}` } })))
  }
  await cool(s)
  const db = await open(s)
  try {
    expect(rows(db.collections.notes).length).toBe(20)
    expect(db.collections.notes.get(`n9`).text).toBe(`${text}29`)
  } finally {
    db.close()
  }
  state.many = { url: s.url, offset: (await s.head()).offset }
})

test(`kept for the next phase`, async () => {
  const s = await createStream(`kept-state`, `application/json`)
  await send(s, ...history)
  state.kept = { url: s.url, outcome }
  expect(newURL(`x`)).toContain(inject(`prefix`))
})
