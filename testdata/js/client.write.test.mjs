import { writeFile } from "node:fs/promises"
import { DurableStream, IdempotentProducer, StaleEpochError } from "@durable-streams/client"
import { afterAll, describe, expect, inject, test } from "vitest"
import { createEvents, createStream, follow, makeEvents, newURL, produce, readJSON, readText } from "./streams.mjs"

// What the next phase checks after the server has been killed and started again.
const state = {}
afterAll(() => writeFile(inject(`state`), JSON.stringify(state)))

describe(`streams`, () => {
  test(`is created, described and deleted`, async () => {
    const s = await createStream(`life`, `text/plain`, { body: `first` })
    const head = await s.head()
    expect(head).toMatchObject({ exists: true, contentType: `text/plain`, streamClosed: false })
    expect(await readText(s)).toBe(`first`)
    expect(await readText(s, head.offset)).toBe(``)
    await s.delete()
    expect(await s.head()).toEqual({ exists: false })
    await expect(readText(s)).rejects.toMatchObject({ status: 404 })
  })

  test(`refuses another content type under the same name`, async () => {
    const s = await createStream(`typed`, `text/plain`)
    await expect(DurableStream.create({ url: s.url, contentType: `application/json` }))
      .rejects.toMatchObject({ status: 409 })
    await expect(s.append(`{}`, { contentType: `application/json` })).rejects.toMatchObject({ status: 409 })
  })

  test(`takes text and gives it back`, async () => {
    const s = await createStream(`text`, `text/plain; charset=utf-8`)
    for (const part of [`one\r\n`, `zwei ü\n`, `\u{1F600}`]) await s.append(part)
    expect(await readText(s)).toBe(`one\r\nzwei ü\n\u{1F600}`)
  })

  test(`takes every byte and gives it back`, async () => {
    const s = await createStream(`bytes`, `application/octet-stream`)
    const all = Uint8Array.from({ length: 256 }, (_, i) => i)
    await s.append(all)
    expect(await (await s.stream({ live: false })).body()).toEqual(all)
    // Over SSE the same bytes travel as base64.
    const live = await s.stream({ live: `sse` })
    const first = await new Promise((resolve, reject) => {
      live.subscribeBytes((chunk) => { if (chunk.data.length > 0) resolve(chunk.data) })
      live.closed.catch(reject)
    })
    live.cancel()
    expect(first).toEqual(all)
  })

  test(`reads more than one answer holds`, async () => {
    const s = await createStream(`large`, `application/octet-stream`)
    const piece = Uint8Array.from({ length: 1 << 20 }, (_, i) => (i * 7919) >> 8)
    for (let i = 0; i < 6; i++) await s.append(piece)
    // With `live: false` the client takes one answer alone; else body() goes on to the tail.
    const body = await (await s.stream({ live: true })).body()
    expect(body.length).toBe(6 * piece.length)
    for (let i = 0; i < 6; i++) {
      expect(Buffer.compare(body.subarray(i * piece.length, (i + 1) * piece.length), piece)).toBe(0)
    }
  })
})

describe(`JSON`, () => {
  test(`keeps messages, their order and their nesting`, async () => {
    const s = await createStream(`json`, `application/json`)
    const messages = [{ a: 1 }, [1, [2]], `text`, 7.5, null, true, {}, []]
    for (const m of messages) await s.append(JSON.stringify(m))
    expect(await readJSON(s)).toEqual(messages)
  })

  test(`keeps what was appended at the same time`, async () => {
    const s = await createStream(`batched`, `application/json`)
    const events = makeEvents(200)
    // The client sends appends made during a request together, as one array.
    await Promise.all(events.map((e) => s.append(JSON.stringify(e))))
    expect(await readJSON(s)).toEqual(events)
  })

  test(`resumes at each batch's offset`, async () => {
    const s = await createEvents(`offsets`, makeEvents(5))
    const offsets = []
    for (let i = 5; i < 8; i++) {
      offsets.push((await s.head()).offset)
      await s.append(JSON.stringify(makeEvents(1, i)[0]))
    }
    for (const [i, offset] of offsets.entries()) {
      expect(await readJSON(s, offset)).toEqual(makeEvents(3 - i, 5 + i))
    }
  })
})

describe.each([`sse`, `long-poll`])(`follow by %s`, (live) => {
  test(`gets what is appended, once and in order`, async () => {
    const s = await createEvents(`follow-${live}`, makeEvents(3))
    const { items } = await follow(s, {
      live,
      done: (items) => items.length >= 10,
      onCaughtUp: async () => {
        for (const e of makeEvents(7, 3)) await s.append(JSON.stringify(e))
      },
    })
    expect(items).toEqual(makeEvents(10))
  })

  test(`goes on where another reader stopped`, async () => {
    const s = await createEvents(`handover-${live}`, makeEvents(4))
    const first = await follow(s, { live, done: (items) => items.length >= 4 })
    await s.append(JSON.stringify({ n: 4 }))
    const second = await follow(s, { live, offset: first.last.offset, done: (items) => items.length >= 1 })
    expect([...first.items, ...second.items]).toEqual([...makeEvents(4), { n: 4 }])
  })

  test(`ends when the stream is closed, with the last message`, async () => {
    const s = await createEvents(`closing-${live}`, makeEvents(1))
    const { items, last } = await follow(s, {
      live,
      done: (_, batch) => batch.streamClosed,
      onCaughtUp: () => s.close({ body: JSON.stringify({ last: true }) }),
    })
    expect(items).toEqual([...makeEvents(1), { last: true }])
    expect(last.streamClosed).toBe(true)
  })
})

describe(`writers`, () => {
  test(`an idempotent producer writes everything once`, async () => {
    const s = await createStream(`producer`, `application/json`)
    const errors = []
    const producer = new IdempotentProducer(s, `p`, { maxBatchBytes: 2_000, onError: (err) => errors.push(err) })
    for (const e of makeEvents(300)) producer.append(JSON.stringify(e))
    await producer.flush()
    await producer.detach()
    expect(errors).toEqual([])
    expect(producer.nextSeq).toBeGreaterThan(1)
    expect(await readJSON(s)).toEqual(makeEvents(300))
  })

  test(`a retry is not stored again`, async () => {
    const s = await createStream(`retry`, `text/plain`)
    // Each call begins its epoch anew, as a writer does that does not know what arrived.
    await produce(s, { epoch: 3 }, [`a`])
    await produce(s, { epoch: 3 }, [`a`, `b`])
    await produce(s, { epoch: 3 }, [`a`])
    expect(await readText(s)).toBe(`ab`)
    await produce(s, { epoch: 4 }, [`c`])
    expect(await readText(s)).toBe(`abc`)
  })

  test(`an older epoch is fenced`, async () => {
    const s = await createStream(`fence`, `application/json`)
    await produce(s, { epoch: 2 }, [`"newer"`])
    await expect(produce(s, { epoch: 1 }, [`"older"`])).rejects.toBeInstanceOf(StaleEpochError)
    await produce(s, { epoch: 1, autoClaim: true }, [`"claimed"`])
    expect(await readJSON(s)).toEqual([`newer`, `claimed`])
  })

  test(`Stream-Seq must rise`, async () => {
    const s = await createStream(`seq`, `text/plain`)
    await s.append(`a`, { seq: `09` })
    await s.append(`b`, { seq: `10` })
    await expect(s.append(`c`, { seq: `10` })).rejects.toMatchObject({ status: 409 })
    expect(await readText(s)).toBe(`ab`)
  })

  test(`a closed stream says where it ends`, async () => {
    const s = await createStream(`closed`, `text/plain`)
    await s.append(`a`)
    const { finalOffset } = await s.close({ body: `z` })
    await expect(s.append(`late`)).rejects.toMatchObject({
      status: 409,
      headers: { "stream-closed": `true`, "stream-next-offset": finalOffset },
    })
    expect(await s.head()).toMatchObject({ streamClosed: true, offset: finalOffset })
    expect(await readText(s)).toBe(`az`)
  })
})

test(`a fork shares the past and not the future`, async () => {
  const source = await createEvents(`source`, makeEvents(3))
  const fork = await DurableStream.create({
    url: newURL(`fork`),
    headers: {
      "Stream-Forked-From": new URL(source.url).pathname,
      "Stream-Fork-Offset": (await source.head()).offset,
    },
  })
  await source.append(JSON.stringify({ only: `source` }))
  await fork.append(JSON.stringify({ only: `fork` }), { contentType: `application/json` })
  expect(await readJSON(fork)).toEqual([...makeEvents(3), { only: `fork` }])
  expect(await readJSON(source)).toEqual([...makeEvents(3), { only: `source` }])
  state.fork = { url: fork.url, source: source.url }
})

describe(`kept for the next phase`, () => {
  test(`events and an offset in the middle`, async () => {
    const s = await createEvents(`kept`, makeEvents(4))
    const { offset } = await s.head()
    for (const e of makeEvents(4, 4)) await s.append(JSON.stringify(e))
    state.events = { url: s.url, offset, tail: (await s.head()).offset }
  })

  test(`a producer in the middle of its epoch`, async () => {
    const s = await createStream(`kept-producer`, `text/plain`)
    await produce(s, { epoch: 5 }, [`a`, `b`])
    await s.append(`c`, { seq: `m` })
    state.producer = { url: s.url }
  })

  test(`a closed and a deleted stream`, async () => {
    const closed = await createStream(`kept-closed`, `text/plain`)
    state.closed = { url: closed.url, offset: (await closed.close({ body: `end` })).finalOffset }
    const gone = await createStream(`kept-gone`, `text/plain`, { body: `x` })
    await gone.delete()
    state.gone = { url: gone.url }
  })
})
