import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  answering,
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  splitResponses,
  startEngine,
} from '../proxy/engine-rig.ts'

interface Refused {
  title: string
  send: string
  status: number
}

interface Accepted {
  title: string
  send: string
  upstream: string
  closes?: boolean
  /** `whole`: what the upstream gets depends on how the bytes were cut. */
  pieces?: 'whole'
}

interface Answered {
  title: string
  upstream: string
  /** The upstream closes after these bytes. */
  closes?: boolean
  client?: string
  clientStarts?: string
  /** The gateway's own answer instead. */
  status?: number
  /** The client's connection is closed with the response incomplete; perhaps only if it came slowly. */
  cut?: boolean | 'byte by byte'
  reused?: boolean
}

function cases<Case>(name: string): Case[] {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
}

/** A byte at a time, each in a packet of its own. */
async function drip(connection: RawConnection, text: string): Promise<void> {
  for (const byte of Buffer.from(text, 'latin1')) {
    if (connection.closed) return
    await new Promise<void>((resolve) => {
      connection.socket.write(Buffer.of(byte), () => setImmediate(resolve))
    })
  }
}

const bodies: Record<number, string> = {
  400: 'invalid request',
  405: 'method not allowed',
  417: 'expectation failed',
  501: 'not implemented',
  505: 'HTTP version not supported',
}
const reasons: Record<number, string> = {
  400: 'Bad Request',
  405: 'Method Not Allowed',
  417: 'Expectation Failed',
  501: 'Not Implemented',
  505: 'HTTP Version Not Supported',
}

const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

let rig: EngineRig
let upstream: RawUpstream

beforeEach(async () => {
  rig = await startEngine()
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

describe('a malformed request head is refused without asking the upstream:', () => {
  for (const { title, send, status } of cases<Refused>('refused-requests.json')) {
    for (const pace of ['at once', 'byte by byte']) {
      test(`${title} (${pace})`, async () => {
        upstream = await answering(answer)
        rig.plane.upstream = upstream.address
        const client = await RawConnection.connect(rig.port)
        if (pace === 'at once') client.write(`${send}GET /next HTTP/1.1\r\nHost: x\r\n\r\n`)
        else void drip(client, send)
        await client.untilEnd()
        const body = bodies[status] ?? ''
        expect(client.text).toBe(
          `HTTP/1.1 ${status} ${reasons[status]}\r\ncontent-type: text/plain\r\n` +
            `content-length: ${body.length}\r\nproxy-status: sluice; error=http_request_error\r\n` +
            `connection: close\r\n\r\n${body}`,
        )
        expect(upstream.connections).toHaveLength(0)
        expect(rig.plane.badHeads).toHaveLength(1)
        expect(rig.engine.counters.badHeads).toBe(1)
        client.socket.destroy()
      })
    }
  }
})

describe('a malformed chunked body is refused, and never complete at the upstream:', () => {
  for (const { title, body } of cases<{ title: string; body: string }>('refused-bodies.json')) {
    for (const pace of ['at once', 'byte by byte']) {
      test(`${title} (${pace})`, async () => {
        upstream = await RawUpstream.start()
        rig.plane.upstream = upstream.address
        const client = await RawConnection.connect(rig.port)
        const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
        if (pace === 'at once') client.write(head + body)
        else void drip(client, head + body)
        await client.untilEnd()
        expect(client.text).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
        expect(client.text).toMatch(/connection: close\r\n/)
        expect(splitResponses(client.text)).toHaveLength(1)
        await eventually(() => upstream.connections.every((one) => one.ended || one.closed))
        expect(upstream.connections.map((one) => one.text).join('')).not.toMatch(
          /0\r\n(.*\r\n)?\r\n$/,
        )
        client.socket.destroy()
      })
    }
  }
})

describe('a valid request is forwarded:', () => {
  for (const one of cases<Accepted>('accepted-requests.json')) {
    for (const pace of one.pieces === 'whole' ? ['at once'] : ['at once', 'byte by byte']) {
      test(`${one.title} (${pace})`, async () => {
        upstream = await RawUpstream.start()
        rig.plane.upstream = upstream.address
        upstream.onData = (connection) => {
          if (connection.text.length >= one.upstream.length) connection.write(answer)
        }
        const client = await RawConnection.connect(rig.port)
        if (pace === 'at once') client.write(one.send)
        else void drip(client, one.send)
        await client.responses(1)
        expect(upstream.connections.map((connection) => connection.text)).toEqual([one.upstream])
        if (one.closes === true) {
          await client.untilEnd()
          expect(client.text).toBe(answer.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
        } else expect(client.text).toBe(answer)
        client.socket.destroy()
      })
    }
  }
})

/** An upstream that sends the bytes of the case first, and a plain answer to the next request. */
async function answerOnce(one: Answered, pace: string): Promise<void> {
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
  upstream.onData = async (connection) => {
    if (upstream.connections.length > 1 || connection.text.includes('/next')) {
      connection.write(answer)
      return
    }
    if (pace === 'at once') connection.write(one.upstream)
    else await drip(connection, one.upstream)
    if (one.closes === true) connection.socket.end()
  }
}

async function expectCut(client: RawConnection, one: Answered): Promise<void> {
  await client.untilEnd()
  const wanted = unchunk(one.client ?? one.clientStarts ?? '')
  expect(unchunk(client.text).startsWith(wanted)).toBe(true)
  expect(client.text).not.toContain('\r\n0\r\n\r\n')
  expect(rig.plane.done[0]?.ending).toBe('upstream-cut')
}

function expectFirst(client: RawConnection, one: Answered): void {
  if (one.status === undefined) expect(unchunk(client.text)).toBe(unchunk(one.client ?? ''))
  else {
    expect(client.text).toMatch(new RegExp(`^HTTP/1\\.1 ${one.status} `))
    expect(client.text).not.toContain('connection: close')
  }
}

describe('the client gets the right response for an upstream with', () => {
  for (const one of cases<Answered>('responses.json')) {
    for (const pace of ['at once', 'byte by byte']) {
      test(`${one.title} (${pace})`, async () => {
        await answerOnce(one, pace)
        const client = await RawConnection.connect(rig.port)
        client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
        if (one.cut === true || one.cut === pace) {
          await expectCut(client, one)
          return
        }
        await eventually(() => rig.plane.done.length === 1)
        const parts = one.status === undefined ? splitResponses(one.client ?? '').length : 1
        await client.responses(parts)
        expectFirst(client, one)
        const first = client.text
        if (one.reused !== true) await upstream.connections[0]?.untilEnd()
        client.write('GET /next HTTP/1.1\r\nHost: x\r\n\r\n')
        await client.responses(parts + 1)
        // Whatever the first response was, the next request gets its own.
        expect(client.text).toBe(first + answer)
        expect(upstream.connections.length).toBe(one.reused === true ? 1 : 2)
        client.socket.destroy()
      })
    }
  }
})

/** The text with its chunks joined if it has a chunked body. */
function unchunk(text: string): string {
  const at = text.search(/transfer-encoding: chunked/i)
  if (at < 0) return text
  const bodyAt = text.indexOf('\r\n\r\n', at) + 4
  return text.slice(0, bodyAt) + text.slice(bodyAt).replace(/[0-9a-f]+\r\n([^\r]*)\r\n/g, '$1')
}
