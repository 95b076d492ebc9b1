import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { rmSync } from "node:fs"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

const startMs = 15_000
const stopMs = 30_000

/** A firn process of its own, on a free port, with a data directory that outlives restarts. */
export class Server {
  #binary
  #flags
  #dir
  #process
  #log = ``

  /** Gives `use` a started server and ends it afterwards, whatever happens. */
  static async with({ firn, flags }, use) {
    const server = new Server(firn, flags)
    server.#dir = await mkdtemp(join(tmpdir(), `firn-test-`))
    const orphan = () => {
      server.#process?.kill(`SIGKILL`)
      rmSync(server.#dir, { recursive: true, force: true })
    }
    process.once(`exit`, orphan)
    const onSignal = (signal) => process.exit(signal === `SIGINT` ? 130 : 143)
    process.once(`SIGINT`, onSignal).once(`SIGTERM`, onSignal)
    try {
      await server.start()
      const result = await use(server)
      await server.stop()
      return result
    } catch (err) {
      if (server.#log) console.log(`--- log of the server ---\n${server.#log.slice(-20_000)}`)
      throw err
    } finally {
      await server.kill()
      process.off(`exit`, orphan).off(`SIGINT`, onSignal).off(`SIGTERM`, onSignal)
      await rm(server.#dir, { recursive: true })
    }
  }

  constructor(binary, flags) {
    this.#binary = binary
    this.#flags = flags
  }

  async start() {
    const address = `127.0.0.1:${await freePort()}`
    this.url = `http://${address}`
    const child = spawn(this.#binary, [
      `serve`,
      `--listen=${address}`,
      `--data-dir=${join(this.#dir, `data`)}`,
      `--admin.listen=127.0.0.1:0`,
      ...(this.#flags.length ? this.#flags : [`--live.long-poll-timeout=500ms`]),
    ], { stdio: [`ignore`, `pipe`, `pipe`] })
    this.#process = child
    const begin = this.#log.length
    for (const out of [child.stdout, child.stderr]) out.on(`data`, (text) => { this.#log += text })
    this.admin = new Promise((resolve) => {
      child.stdout.on(`data`, () => {
        const [, admin] = this.#log.slice(begin).match(/admin on (http:\/\/[^\s,]+),/) ?? []
        if (admin) resolve(admin)
      })
    })
    const failed = new Promise((_, reject) => {
      child.once(`error`, reject)
      child.once(`exit`, (code, signal) => reject(new Error(`server ended at its start: ${signal ?? code}`)))
    })
    const give = new AbortController()
    try {
      await Promise.race([failed, answering(this.url, give.signal)])
    } finally {
      give.abort()
      failed.catch(() => {})
    }
  }

  /** Asks the server to stop; anything but a clean end is an error. */
  async stop() {
    const [code, signal] = await this.#end(`SIGTERM`)
    if (code !== 0) throw new Error(`server did not stop cleanly: ${signal ?? code}`)
  }

  /** Ends the server at once, as a crash would. */
  async kill() {
    await this.#end(`SIGKILL`)
  }

  async #end(signal) {
    const child = this.#process
    if (!child || child.exitCode !== null || child.signalCode !== null) return [child?.exitCode, child?.signalCode]
    const ended = once(child, `exit`)
    child.kill(signal)
    const late = setTimeout(() => child.kill(`SIGKILL`), stopMs)
    try {
      return await ended
    } finally {
      clearTimeout(late)
    }
  }
}

async function freePort() {
  const probe = createServer()
  probe.listen(0, `127.0.0.1`)
  await once(probe, `listening`)
  const { port } = probe.address()
  probe.close()
  await once(probe, `close`)
  return port
}

/** Resolves as soon as the server answers anything at all. */
export async function answering(url, signal = new AbortController().signal) {
  const until = Date.now() + startMs
  for (;;) {
    try {
      await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(3_000)]) })
      return
    } catch (err) {
      if (signal.aborted) return
      if (Date.now() > until) throw new Error(`no answer at ${url}: ${err.cause?.code ?? err.message}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
