import { readFile } from "node:fs/promises"
import { DurableStream } from "@durable-streams/client"
import { describe, expect, inject, test } from "vitest"
import { cool, follow, makeEvents, produce, readJSON, readText } from "./streams.mjs"

// The phase before wrote this; the server was killed after its last answer.
const state = JSON.parse(await readFile(inject(`state`), `utf8`))
// The server may have come back at another address.
const at = (url) => new URL(new URL(url).pathname, inject(`url`)).href
const open = (kept, contentType) => new DurableStream({ url: at(kept.url), contentType })

describe(`after the server was killed`, () => {
  test(`data are in the tier that the driver wants`, async () => {
    await cool(open(state.events))
    const answer = await fetch(`${at(state.events.url)}?offset=-1`)
    expect(answer.headers.get(`server-timing`)).toContain(inject(`admin`) ? `cold` : `hot`)
  })

  test(`everything acknowledged is there, at the same offsets`, async () => {
    const s = open(state.events)
    expect((await s.head()).offset).toBe(state.events.tail)
    expect(await readJSON(s)).toEqual(makeEvents(8))
    expect(await readJSON(s, state.events.offset)).toEqual(makeEvents(4, 4))
    expect(await readJSON(s, state.events.tail)).toEqual([])
  })

  test.each([`sse`, `long-poll`])(`a reader goes on by %s from its stored offset`, async (live) => {
    const s = open(state.events, `application/json`)
    const start = (await s.head()).offset
    const { items } = await follow(s, {
      live,
      offset: start,
      done: (items) => items.length >= 2,
      onCaughtUp: async () => {
        for (const e of makeEvents(2, 100)) await s.append(JSON.stringify(e))
      },
    })
    expect(items).toEqual(makeEvents(2, 100))
    expect((await readJSON(s, state.events.offset)).slice(0, 4)).toEqual(makeEvents(4, 4))
  })

  test(`a producer's retry is known, and its next append follows`, async () => {
    const s = open(state.producer, `text/plain`)
    await produce(s, { epoch: 5 }, [`a`, `b`])
    expect(await readText(s)).toBe(`abc`)
    await produce(s, { epoch: 5 }, [`a`, `b`, `d`])
    await expect(s.append(`e`, { seq: `l` })).rejects.toMatchObject({ status: 409 })
    await s.append(`e`, { seq: `n` })
    expect(await readText(s)).toBe(`abcde`)
  })

  test(`a closed stream is closed`, async () => {
    const s = open(state.closed, `text/plain`)
    expect(await s.head()).toMatchObject({ streamClosed: true, offset: state.closed.offset })
    await expect(s.append(`late`)).rejects.toMatchObject({ status: 409, headers: { "stream-closed": `true` } })
    expect(await readText(s)).toBe(`end`)
  })

  test(`a deleted stream is gone, and its name is free`, async () => {
    const s = open(state.gone, `text/plain`)
    expect(await s.head()).toEqual({ exists: false })
    const again = await DurableStream.create({ url: s.url, contentType: `text/plain`, body: `anew` })
    expect(await readText(again)).toBe(`anew`)
  })

  test(`a fork outlives its source`, async () => {
    const fork = open(state.fork)
    await open({ url: state.fork.source }).delete()
    expect(await readJSON(fork)).toEqual([...makeEvents(3), { only: `fork` }])
  })
})
