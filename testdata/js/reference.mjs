// reference.mjs DATA_DIR PORT LONG_POLL_MS: runs the protocol's reference server and prints its URL.
import { DurableStreamTestServer } from "@durable-streams/server"

const [dataDir, port, longPollTimeout] = process.argv.slice(2)
const server = new DurableStreamTestServer({
  dataDir,
  port: Number(port),
  longPollTimeout: Number(longPollTimeout),
})
console.log(await server.start())
