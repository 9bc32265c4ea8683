import { afterEach, beforeEach, expect, test } from 'vitest'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  splitResponses,
  startEngine,
} from './engine-rig.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

let rig: EngineRig
let upstream: RawUpstream

beforeEach(async () => {
  rig = await startEngine()
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

/** What a server that prefers one kind of framing makes of a byte stream: request lines. */
function readRequests(text: string, prefers: 'content-length' | 'transfer-encoding'): string[] {
  const found: string[] = []
  let rest = text
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) return found
    const head = rest.slice(0, headEnd)
    rest = rest.slice(headEnd + 4)
    const length = /\r\ncontent-length[ \t]*:[ \t]*(\d+)/i.exec(head)?.[1]
    const isChunked = /\r\ntransfer-encoding[ \t]*:[^\r]*chunked/i.test(head)
    const byLength = length !== undefined && (prefers === 'content-length' || !isChunked)
    if (byLength) {
      if (rest.length < Number(length)) return found
      rest = rest.slice(Number(length))
    } else if (isChunked) {
      const end = chunkedEnd(rest)
      if (end < 0) return found
      rest = rest.slice(end)
    }
    found.push(head.slice(0, head.indexOf('\r\n')))
  }
}

/** Offset after a chunked body, read as laxly as servers do; -1 while it is incomplete. */
function chunkedEnd(text: string): number {
  let at = 0
  for (;;) {
    const lineEnd = text.indexOf('\n', at)
    if (lineEnd < 0) return -1
    const size = Number.parseInt(text.slice(at, lineEnd), 16) || 0
    at = lineEnd + 1
    if (size === 0) {
      const end = text.indexOf('\r\n', at)
      return end < 0 ? -1 : end + 2
    }
    at += size + 2
    if (at > text.length) return -1
  }
}

const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n'
const framings = [
  '',
  'Content-Length: 0\r\n',
  `Content-Length: ${hidden.length}\r\n`,
  'Content-Length: 4\r\n',
  'Content-Length : 4\r\n',
  'Content-Length:\t4\r\n',
  'Content-Length: 04\r\n',
  'Content-Length: 4,4\r\n',
  'Content_Length: 4\r\n',
  'Transfer-Encoding: chunked\r\n',
  'transfer-encoding:chunked \r\n',
  'Transfer-Encoding: CHUNKED\r\n',
  'Transfer-Encoding: chunked, identity\r\n',
  'Transfer-Encoding: "chunked"\r\n',
  'Transfer-Encoding: x\r\n chunked\r\n',
  'Transfer_Encoding: chunked\r\n',
  'X: a\nTransfer-Encoding: chunked\r\n',
  'X: a\rTransfer-Encoding: chunked\r\n',
  'Connection: Transfer-Encoding\r\n',
  'Connection: Content-Length\r\n',
]
const bodies = [
  '',
  hidden,
  `0\r\n\r\n${hidden}`,
  `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`,
  `4\r\nabcd\r\n0\r\n\r\n${hidden}`,
  `4;x=\n\r\nabcd\r\n0\r\n\r\n${hidden}`,
  `0\r\nContent-Length: 4\r\n\r\n${hidden}`,
]

test('one request in is one request out for every reader, whatever framing the client claims', async () => {
  upstream.onData = (connection) => {
    const complete = readRequests(connection.text, 'transfer-encoding').length
    while (((connection as { answered?: number }).answered ?? 0) < complete) {
      const answered = (connection as { answered?: number }).answered ?? 0
      Object.assign(connection, { answered: answered + 1 })
      connection.write(ok)
    }
  }
  for (const first of framings) {
    for (const second of framings) {
      for (const body of bodies) {
        const sent = `POST /front HTTP/1.1\r\nHost: x\r\n${first}${second}\r\n${body}`
        await checkOne(sent)
      }
    }
  }
  // Both sides of the line have been walked on.
  expect(rig.plane.done.length).toBeGreaterThan(100)
  expect(rig.plane.badHeads.length).toBeGreaterThan(1_000)
}, 120_000)

/** Until the gateway has closed, or waits for bytes that do not come. */
async function settled(client: RawConnection, length: number): Promise<void> {
  const { counters } = rig.engine
  const before = counters.receivedBytes
  await eventually(() => counters.receivedBytes >= before + length || client.ended)
  for (let still = 0, last = ''; still < 12 && !client.ended && !client.closed; ) {
    await new Promise((resolve) => setImmediate(resolve))
    const received = upstream.connections.reduce((sum, one) => sum + one.received, 0)
    const now = `${counters.receivedBytes} ${counters.sentBytes} ${received} ${client.received}`
    still = now === last ? still + 1 : 0
    last = now
  }
}

async function checkOne(sent: string): Promise<void> {
  const begunBefore = rig.plane.done.length
  const textBefore = new Map(upstream.connections.map((one) => [one, one.text.length]))
  const client = await RawConnection.connect(rig.port)
  // The last request is what the client would get the wrong answer for.
  client.write(`${sent}GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  await settled(client, sent.length)
  client.socket.destroy()
  await eventually(() => rig.engine.counters.connectionsOpen === 0)
  const exchanges = rig.plane.done.slice(begunBefore).map((one) => `${one.method} ${one.path}`)
  for (const connection of upstream.connections) {
    const text = connection.text.slice(textBefore.get(connection) ?? 0)
    const byLength = readRequests(text, 'content-length')
    const byCoding = readRequests(text, 'transfer-encoding')
    expect(byLength, JSON.stringify(sent)).toEqual(byCoding)
    // No line that the gateway has not handled as a request of its own.
    for (const line of byCoding) {
      expect(exchanges, JSON.stringify(sent)).toContain(line.replace(/ HTTP\/1\.1$/, ''))
    }
  }
  const answers = splitResponses(client.text).length
  expect(answers, JSON.stringify(sent)).toBeLessThanOrEqual(exchanges.length + 1)
}
