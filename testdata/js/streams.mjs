import { DurableStream, IdempotentProducer } from "@durable-streams/client"
import { inject } from "vitest"

const run = crypto.randomUUID()

/** The URL of a stream that only this run of this file uses. */
export function newURL(name) {
  return `${inject(`url`)}${inject(`prefix`)}${run}.${name}`
}

export function createStream(name, contentType, options = {}) {
  return DurableStream.create({ url: newURL(name), contentType, ...options })
}

/** A stream of JSON messages, one append each. */
export async function createEvents(name, events) {
  const s = await createStream(name, `application/json`)
  for (const event of events) await s.append(JSON.stringify(event))
  await cool(s)
  return s
}

/** Where the driver asks for cold data: moves all that the stream has to the cold tier. */
export async function cool({ url }) {
  const admin = inject(`admin`)
  if (!admin) return
  const name = new URL(url).pathname.replace(/^\/v1\/stream\//, `/default/`).replace(/^\/ds\//, `/`)
  for (const step of [`seal`, `evict`]) {
    const answer = await fetch(`${admin}/admin/streams${name}/${step}`, { method: `POST` })
    if (!answer.ok && answer.status !== 404) throw new Error(`${step} ${name}: ${answer.status} ${await answer.text()}`)
  }
}

/** What `count` messages look like: none is equal to another. */
export function makeEvents(count, from = 0) {
  return Array.from({ length: count }, (_, i) => ({ n: from + i, text: `ärger ${from + i} \u{1F600}\n"quoted"` }))
}

export async function readJSON(stream, offset) {
  await cool(stream)
  return (await stream.stream({ offset, live: false })).json()
}

export async function readText(stream, offset) {
  await cool(stream)
  return (await stream.stream({ offset, live: false })).text()
}

/** Writes each message as one append of producer `p`, from sequence 0 of the given epoch on. */
export async function produce(stream, options, messages) {
  let failure
  const producer = new IdempotentProducer(stream, `p`, { ...options, onError: (err) => { failure ??= err } })
  for (const message of messages) {
    producer.append(message)
    await producer.flush()
    if (failure) throw failure
  }
}

/**
 * Follows a JSON stream until `done(items, batch)`, and returns the items and the last
 * batch. `onCaughtUp` is called once, when the reader is at the tail for the first time.
 */
export async function follow(stream, { live, offset, done, onCaughtUp }) {
  const session = await stream.stream({ live, offset })
  const items = []
  let caughtUp = false
  try {
    const last = await new Promise((resolve, reject) => {
      session.subscribeJson(async (batch) => {
        items.push(...batch.items)
        if (done(items, batch)) resolve(batch)
        if (batch.upToDate && !caughtUp) {
          caughtUp = true
          Promise.resolve(onCaughtUp?.()).catch(reject)
        }
      })
      // It may be fulfilled before the last batch has been handed over; only its failure tells.
      session.closed.catch(reject)
    })
    return { items, last }
  } finally {
    session.cancel()
  }
}

/** The schema of a value that has all the fields named. */
function fields(...names) {
  const validate = (value) => names.every((n) => value?.[n] !== undefined) ? { value } : { issues: [{ message: `a field is missing` }] }
  return { "~standard": { version: 1, vendor: `firn`, validate } }
}

/** The state that both phases know: two collections in one stream. */
export const definition = {
  users: { schema: fields(`id`, `name`), type: `user`, primaryKey: `id` },
  notes: { schema: fields(`id`, `text`), type: `note`, primaryKey: `id` },
}

/** The rows of a collection by id, without what the package adds to them. */
export function rows(collection) {
  const own = (row) => Object.fromEntries(Object.entries(row).filter(([name]) => !/^[$_]/.test(name)))
  return collection.toArray.map(own).sort((a, b) => (a.id < b.id ? -1 : 1))
}
