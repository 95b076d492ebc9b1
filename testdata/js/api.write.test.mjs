// What the client offers beside the usual, each at least once.
import {
  BackoffDefaults, DurableStream, DurableStreamError, FetchError, IdempotentProducer, InvalidSignalError, MissingStreamUrlError,
  SequenceGapError, createFetchWithBackoff, stream,
} from "@durable-streams/client"
import { describe, expect, test, vi } from "vitest"
import { cool, createEvents, createStream, makeEvents, newURL, readJSON, readText } from "./streams.mjs"

/** A fetch that keeps what was asked, and answers the first requests itself. */
function spy(...answers) {
  const asked = []
  const fetched = async (url, init) => {
    asked.push({ url: new URL(url), method: init?.method ?? `GET`, headers: new Headers(init?.headers) })
    return answers.shift()?.() ?? fetch(url, init)
  }
  return Object.assign(fetched, { asked })
}

/** An async iterable of batches as a subscriber is given them, until one is `last`. */
function collect(session, subscribe, last) {
  return new Promise((resolve, reject) => {
    const got = []
    session[subscribe]((batch) => {
      got.push(batch)
      if (last(got, batch)) resolve(got)
    })
    session.closed.catch(reject)
  }).finally(() => session.cancel())
}

describe(`handles`, () => {
  test(`are made, found and deleted without an instance`, async () => {
    const url = newURL(`static`)
    await DurableStream.create({ url, contentType: `text/plain`, body: `x` })
    const s = await DurableStream.connect({ url })
    expect(s.contentType).toBe(`text/plain`)
    expect(await DurableStream.head({ url })).toMatchObject({ exists: true, contentType: `text/plain` })
    await s.append(`y`)
    expect(await readText(s)).toBe(`xy`)
    await DurableStream.delete({ url })
    expect(await DurableStream.head({ url })).toEqual({ exists: false })
    expect(() => new DurableStream({})).toThrow(MissingStreamUrlError)
    expect(() => new DurableStream({ url, signal: `no` })).toThrow(InvalidSignalError)
  })

  test(`are created closed, and with a lifetime`, async () => {
    const closed = await createStream(`born-closed`, `application/json`, { body: `[1,2]`, closed: true })
    expect(await closed.head()).toMatchObject({ streamClosed: true })
    expect(await readJSON(closed)).toEqual([1, 2])
    await expect(closed.append(`3`)).rejects.toMatchObject({ status: 409 })
    for (const lifetime of [{ ttlSeconds: 600 }, { expiresAt: new Date(Date.now() + 6e5).toISOString() }]) {
      const s = await createStream(`lives-${Object.keys(lifetime)[0]}`, `text/plain`, lifetime)
      expect((await s.create({ contentType: `text/plain`, ...lifetime })).url).toBe(s.url)
      await expect(s.create({ contentType: `text/plain` })).rejects.toMatchObject({ status: 409 })
    }
  })

  test(`send headers and parameters anew with each request`, async () => {
    let n = 0
    const fetched = spy()
    const s = await createStream(`headers`, `text/plain`, {
      fetch: fetched, headers: { "X-Fixed": `a`, "X-Count": () => `${++n}` }, params: { p: async () => `v${n}`, none: undefined },
    })
    await s.append(`x`)
    await (await s.stream({ live: false, headers: { "X-Own": `b` } })).text()
    expect(fetched.asked.map((a) => a.headers.get(`x-count`))).toEqual([...fetched.asked.keys()].map((i) => `${i + 1}`))
    expect(fetched.asked.every((a) => a.headers.get(`x-fixed`) === `a` && a.url.searchParams.get(`p`).startsWith(`v`))).toBe(true)
    expect(fetched.asked.at(-1).headers.get(`x-own`)).toBe(`b`)
  })

  test(`stop when they are told to`, async () => {
    const s = await createEvents(`aborted`, makeEvents(1))
    for (const live of [`sse`, `long-poll`]) {
      const control = new AbortController()
      const session = await stream({ url: s.url, live, signal: control.signal })
      await new Promise((resolve) => session.subscribeJson(({ upToDate }) => { if (upToDate) resolve() }))
      control.abort()
      await session.closed.catch(() => {})
    }
    await expect(s.append(`1`, { signal: AbortSignal.abort() })).rejects.toThrow()
  })
})

describe(`appends`, () => {
  test.each([true, false])(`keep their order, batching: %s`, async (batching) => {
    const s = await createStream(`order-${batching}`, `application/json`, { batching })
    for (const n of [0, 1, 2]) await s.append(Promise.resolve(JSON.stringify(n)))
    await s.append(new TextEncoder().encode(`[3]`))
    expect(await readJSON(s)).toEqual([0, 1, 2, [3]])
  })

  test(`take streams of chunks`, async () => {
    const s = await createStream(`chunks`, `text/plain`)
    await s.appendStream((async function* () { yield `a`; yield new TextEncoder().encode(`ü`) })())
    await s.appendStream(new Blob([`c`]).stream())
    await new Blob([`d`, `e`]).stream().pipeTo(s.writable({ producerId: `w`, lingerMs: 1, maxBatchBytes: 1 }))
    expect(await readText(s)).toBe(`aücde`)
    expect(await s.head()).toMatchObject({ streamClosed: true })
    const open = await createStream(`chunks-open`, `text/plain`)
    const writer = open.writable().getWriter()
    await writer.write(`x`)
    await writer.abort()
    await vi.waitFor(async () => expect(await readText(open)).toBe(`x`))
    expect(await open.head()).toMatchObject({ streamClosed: false })
  })

  test(`fail with what the server said`, async () => {
    const s = await createStream(`errors`, `text/plain`)
    const absent = new DurableStream({ url: newURL(`absent`), contentType: `text/plain` })
    await expect(absent.append(`x`)).rejects.toSatisfy((err) => err instanceof FetchError || err instanceof DurableStreamError)
    await s.close()
    const producer = new IdempotentProducer(s, `late`, { onError: (err) => { failure = err } })
    let failure
    producer.append(`x`)
    await producer.flush().catch((err) => { failure ??= err })
    expect(failure).toBeInstanceOf(Error)
    expect(await readText(s)).toBe(``)
    await s.close() // again
  })
})

describe(`sessions`, () => {
  test(`give the whole in every form`, async () => {
    const events = makeEvents(20)
    const s = await createEvents(`forms`, events)
    const text = JSON.stringify(events)
    for (const live of [false, true]) {
      const open = () => stream({ url: s.url, live })
      expect(await (await open()).json()).toEqual(events)
      expect(JSON.parse(await (await open()).text())).toEqual(events)
      expect(JSON.parse(new TextDecoder().decode(await (await open()).body()))).toEqual(events)
    }
    const items = []
    for await (const item of (await stream({ url: s.url, live: false })).jsonStream()) items.push(item)
    expect(items).toEqual(events)
    let chunks = ``
    for await (const chunk of (await stream({ url: s.url, live: false })).textStream()) chunks += chunk
    expect(JSON.parse(chunks)).toEqual(JSON.parse(text))
    const bytes = []
    for await (const chunk of (await stream({ url: s.url, live: false })).bodyStream()) bytes.push(chunk)
    expect(JSON.parse(Buffer.concat(bytes).toString())).toEqual(events)
  })

  test.each([true, `sse`, `long-poll`])(`follow bytes and text by %s`, async (live) => {
    for (const [subscribe, contentType] of [[`subscribeBytes`, `application/octet-stream`], [`subscribeText`, `text/plain`]]) {
      const s = await createStream(`${subscribe}-${live}`, contentType, { body: `a` })
      await cool(s)
      const session = await s.stream({ live })
      const join = (got) => got.map((c) => c.text ?? Buffer.from(c.data).toString()).join(``)
      let sent = 0
      const got = await collect(session, subscribe, (got, batch) => {
        if (batch.upToDate && sent < 3 && join(got).length === 1 + sent) void s.append(`${++sent}`)
        return join(got).length >= 4
      })
      expect(join(got)).toBe(`a123`)
      expect(got.at(-1).offset).toBe((await s.head()).offset)
    }
  })

  test.each([`sse`, `long-poll`])(`begin at the tail by %s`, async (live) => {
    const s = await createEvents(`now-${live}`, makeEvents(3))
    const session = await stream({ url: s.url, live, offset: `now`, json: true })
    let sent = false
    const got = await collect(session, `subscribeJson`, (got, { upToDate }) => {
      if (upToDate && !sent) sent = void s.append(`"new"`) ?? true
      return got.some((b) => b.items.length)
    })
    expect(got.flatMap((b) => b.items)).toEqual([`new`])
    expect(session).toMatchObject({ url: expect.stringContaining(s.url), live, startOffset: `now` })
  })

  test(`try again, and ask whether to`, async () => {
    const s = await createEvents(`again`, makeEvents(2))
    const busy = () => new Response(``, { status: 503, headers: { "retry-after": `0` } })
    const backoffOptions = { ...BackoffDefaults, initialDelay: 1, maxDelay: 2 }
    const fetched = spy(busy, busy)
    expect(await (await stream({ url: s.url, live: false, fetch: fetched, backoffOptions })).json()).toEqual(makeEvents(2))
    expect(fetched.asked.length).toBe(3)
    const refused = spy(() => new Response(``, { status: 401 }))
    const session = await stream({
      url: s.url, live: false, fetch: refused, onError: (err) => err.status === 401 ? { headers: { Authorization: `b` } } : undefined,
    })
    expect(await session.json()).toEqual(makeEvents(2))
    expect(refused.asked.at(-1).headers.get(`authorization`)).toBe(`b`)
    const patient = createFetchWithBackoff(spy(busy), backoffOptions)
    expect((await patient(s.url)).status).toBe(200)
  })
})

describe(`producers`, () => {
  const produces = (s, id, options = {}) => {
    const errors = []
    return Object.assign(new IdempotentProducer(s, id, { onError: (err) => errors.push(err), ...options }), { errors })
  }

  test(`keep their order however many requests are under way`, async () => {
    const s = await createStream(`under-way`, `application/json`)
    const p = produces(s, `p`, { maxInFlight: 5, maxBatchBytes: 200, lingerMs: 0 })
    for (const e of makeEvents(500)) p.append(JSON.stringify(e))
    await p.flush()
    expect(p.errors).toEqual([])
    expect(p).toMatchObject({ pendingCount: 0, inFlightCount: 0, epoch: 0, lastSuccessfulOffset: (await s.head()).offset })
    await p.restart()
    expect(p).toMatchObject({ epoch: 1, nextSeq: 0 })
    p.append(`"restarted"`)
    expect(await p.close(`"last"`)).toEqual({ finalOffset: (await s.head()).offset })
    expect(await readJSON(s)).toEqual([...makeEvents(500), `restarted`, `last`])
    expect(await s.head()).toMatchObject({ streamClosed: true })
  })

  test(`repeat what got no answer`, async () => {
    const s = await createStream(`unanswered`, `application/json`)
    let [n, duplicates] = [0, 0]
    const lossy = async (url, init) => {
      const answer = await fetch(url, init)
      if (!answer.ok || ++n % 3) return answer
      const again = await fetch(url, init) // as the first answer was lost
      if (again.status === 204) duplicates++
      return again
    }
    const p = produces(s, `p`, { fetch: lossy, maxBatchBytes: 100, headers: { "X-Own": `1` } })
    for (const e of makeEvents(50)) p.append(JSON.stringify(e))
    await p.flush()
    expect(p.errors).toEqual([])
    expect(duplicates).toBeGreaterThan(3)
    expect(await readJSON(s)).toEqual(makeEvents(50))
  })

  test(`are told of a gap`, async () => {
    const s = await createStream(`gap`, `text/plain`)
    const own = (seq) => fetch(s.url, {
      method: `POST`, body: `x`,
      headers: { "content-type": `text/plain`, "Producer-Id": `p`, "Producer-Epoch": `0`, "Producer-Seq": `${seq}` },
    })
    expect((await own(0)).ok).toBe(true)
    const gap = await own(5)
    expect(gap.status).toBe(409)
    expect([gap.headers.get(`producer-expected-seq`), gap.headers.get(`producer-received-seq`)]).toEqual([`1`, `5`])
    expect(new SequenceGapError(1, 5)).toMatchObject({ expectedSeq: 1, receivedSeq: 5 })
  })
})

test(`forks begin with what their source had`, async () => {
  const source = await createEvents(`fork-source`, makeEvents(4))
  const { offset } = await source.head()
  const path = new URL(source.url).pathname
  const at = (name, headers) => DurableStream.create({ url: newURL(name), headers: { "Stream-Forked-From": path, ...headers } })
  await source.append(JSON.stringify(makeEvents(1, 4)[0]))
  expect(await readJSON(await at(`fork-tail`, {}))).toEqual(makeEvents(5))
  expect(await readJSON(await at(`fork-middle`, { "Stream-Fork-Offset": offset }))).toEqual(makeEvents(4))
  const sub = await at(`fork-sub`, { "Stream-Fork-Offset": offset, "Stream-Fork-Sub-Offset": `1` })
  expect(await readJSON(sub)).toEqual(makeEvents(5))
})
