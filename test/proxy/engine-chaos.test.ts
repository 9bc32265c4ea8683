import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ServerExchange } from '../../src/engines/http/contracts/requests.ts'
import { TicketKeyring } from '../../src/engines/http/tls/session-tickets.ts'
import type { ChooseTls } from '../../src/engines/http/tls/tls-choice.ts'
import { ListenerContexts } from '../../src/engines/http/tls/tls-context.ts'
import type { GatewayError } from '../../src/ground/errors/index.ts'
import { Authority } from '../support/certificates.ts'
import fc from '../support/fast-check.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { handshake } from '../support/tls-client.ts'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  splitResponses,
  startEngine,
} from './engine-rig.ts'

/** A generator with a fixed seed, so that a failure comes back. */
function dice(seed: number): (sides: number) => number {
  let state = seed
  return (sides) => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return (state >>> 8) % sides
  }
}

async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await new Promise((resolve) => setImmediate(resolve))
}

const responses = [
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n.',
  `HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n${'b'.repeat(300_000)}`,
  'HTTP/1.1 204 No Content\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloextra',
  'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort',
  'HTTP/1.1 200 OK\r\n\r\nuntil the end',
  'garbage\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhi',
  '',
]

const requests = [
  'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz',
  `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n${'c'.repeat(200_000)}`,
  'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nnever complete',
  'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n',
  'GET / HTTP/1.0\r\nHost: x\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n',
  'NONSENSE\r\n\r\n',
]

/** A data plane that does anything the contract allows. */
function wild(rig: EngineRig, upstream: RawUpstream, roll: (sides: number) => number): void {
  const { plane } = rig
  const forward = (exchange: ServerExchange): void => {
    if (roll(8) === 0) exchange.mirror({ ...upstream.address, pool: 'mirror' })
    const address = roll(10) === 0 ? { host: '127.0.0.1', port: 1, pool: 'dead' } : upstream.address
    exchange.forward(address, {
      connectTimeoutMs: 0,
      attemptTimeoutMs: roll(3) === 0 ? 200 : 0,
      requestTimeoutMs: roll(3) === 0 ? 500 : 0,
    })
  }
  const either = (...choices: (() => void)[]): void => choices[roll(choices.length)]?.()
  plane.request = (exchange) =>
    either(
      () => forward(exchange),
      () => setImmediate(() => forward(exchange)),
      () => exchange.respond(200, [], 'own'),
      () => setImmediate(() => exchange.respond(403, [], 'own')),
      () =>
        void exchange.requestBody.buffer(1_000).then(
          () => forward(exchange),
          () => exchange.respond(500, [], undefined),
        ),
    )
  plane.response = (exchange) =>
    either(
      () => exchange.relay(),
      () => setImmediate(() => exchange.relay()),
      () => exchange.respond(502, [], 'instead'),
      () =>
        void exchange.responseBody?.buffer(1_000).then(
          () => exchange.relay(),
          () => exchange.respond(500, [], undefined),
        ),
    )
  plane.failure = (exchange: ServerExchange, error: GatewayError) =>
    either(
      () => exchange.respond(error.row.status, [], error.row.text),
      () => setImmediate(() => exchange.respond(500, [], 'late')),
      () => forward(exchange),
    )
}

/** Client connections: in plaintext, or over TLS if the listener requires it. */
type Dial = (port: number) => Promise<RawConnection>

const dialTls: Dial = async (port) => new RawConnection(await handshake(port, secured.client))

const secured = {
  client: { ca: '', servername: 'a.example.com' },
  choose: (() => undefined) as ChooseTls,
}
let authority: Authority

beforeAll(() => {
  authority = new Authority()
  const { certificate, key } = authority.issue([secured.client.servername])
  const pair = { certificate: Buffer.from(certificate), privateKey: Buffer.from(key) }
  const place = { gateway: 'ns/gw', listener: 'a' }
  const contexts = new ListenerContexts({ key: 'a', pairs: [pair] }, {}, new TicketKeyring())
  secured.client.ca = authority.certificate
  secured.choose = () => ({ listener: 'a', place, carries: 'http', contexts })
})
afterAll(() => authority.dispose())

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  const isTls = seed > 6
  const kind = isTls ? ' over TLS' : ''
  test(`random faults of clients${kind}, upstreams and policies end every exchange once and leak nothing (seed ${seed})`, async () => {
    const roll = dice(seed * 7919)
    const clock = new ManualClock()
    // Every second seed runs without the undocumented handles of Node.
    const rig = await startEngine({ clock, usesNodeHandles: seed % 2 === 1 })
    const port = isTls ? await rig.engine.listen(0, undefined, secured.choose) : rig.port
    const dial = isTls ? dialTls : RawConnection.connect
    const upstream = await RawUpstream.start()
    wild(rig, upstream, roll)
    const begun = new Map<ServerExchange, number>()
    let requestsSeen = 0
    const { request } = rig.plane
    rig.plane.request = (exchange) => {
      requestsSeen++
      expect(begun.get(exchange) ?? 0).toBe(0)
      begun.set(exchange, 1)
      request(exchange)
    }
    const done = rig.plane.onDone.bind(rig.plane)
    rig.plane.onDone = (exchange) => {
      expect(begun.get(exchange)).toBe(1)
      begun.set(exchange, 0)
      done(exchange)
    }
    upstream.onData = (connection) => {
      const response = responses[roll(responses.length)] ?? ''
      const act = (): void => {
        if (roll(12) === 0) connection.socket.resetAndDestroy()
        else {
          connection.write(response)
          if (roll(6) === 0 || response.endsWith('end')) connection.socket.end()
        }
      }
      if (roll(2) === 0) act()
      else void turns(roll(5)).then(act)
    }
    // Handshakes take their time.
    const rounds = isTls ? 12 : 60
    for (let round = 0; round < rounds; round++) {
      const clients = await Promise.all(Array.from({ length: 5 }, () => dial(port)))
      for (const client of clients) {
        client.keepsText = false
        if (roll(6) === 0) client.socket.pause()
        for (let count = roll(3); count >= 0; count--) {
          client.write(requests[roll(requests.length)] ?? '')
        }
      }
      await turns(roll(20))
      if (roll(2) === 0) clock.advance(250)
      await turns(roll(20))
      clock.advance(600)
      for (const client of clients) {
        if (roll(2) === 0 && !isTls) client.socket.resetAndDestroy()
        else client.socket.destroy()
      }
    }
    // Half-open tunnels, idle connections and mirrors go with their time.
    await turns(20)
    clock.advance(1_300_000)
    await eventually(() => rig.engine.counters.connectionsOpen === 0)
    expect(requestsSeen).toBeGreaterThan(5 * rounds)
    expect([...begun.values()].every((count) => count === 0)).toBe(true)
    expect(rig.plane.done).toHaveLength(requestsSeen)
    clock.advance(200_000)
    expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
    await rig.close()
    upstream.close()
  }, 10_000)
}

test('answers to a stream of requests do not depend on how it is split into packets', async () => {
  const rig = await startEngine()
  rig.plane.request = (exchange) => {
    void exchange.requestBody.buffer(10_000).then((body) => {
      const text = body.complete ? Buffer.from(body.bytes).toString('latin1') : '?'
      const { method, path, query } = exchange.request
      const seen = `${method} ${path} ${query} ${exchange.request.headers.get('x-a')} ${text}`
      exchange.respond(200, [['date', 'x']], seen)
    })
  }
  const message = fc.oneof(
    fc.record({
      head: fc.constantFrom(
        'GET /a?b HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n\r\n',
        'HEAD / HTTP/1.1\r\nHost: x\r\n\r\n',
      ),
      body: fc.constant(''),
    }),
    fc.string({ maxLength: 40 }).map((text) => {
      const body = Buffer.from(text).toString('latin1')
      return { head: `POST /l HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`, body }
    }),
    fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 4 }).map((texts) => {
      const chunks = texts.map((text) => Buffer.from(text).toString('latin1'))
      const framed = chunks.map((chunk) => `${chunk.length.toString(16)};x\r\n${chunk}\r\n`)
      return {
        head: 'POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n',
        body: `${framed.join('')}0\r\n\r\n`,
      }
    }),
  )
  const ask = async (pieces: readonly string[], count: number): Promise<string> => {
    const client = await RawConnection.connect(rig.port)
    for (const piece of pieces) {
      client.write(piece)
      await turns(1)
    }
    await client.until(() => client.text.split('HTTP/1.1 200 OK').length > count || client.ended)
    await client.until(() => splitWithHeads(client.text, pieces.join('')) || client.ended)
    client.socket.destroy()
    return client.text
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { minLength: 1, maxLength: 5 }),
      fc.array(fc.nat({ max: 400 }), { maxLength: 8 }),
      async (messages, cuts) => {
        const stream = messages.map(({ head, body }) => head + body).join('')
        const whole = await ask([stream], messages.length)
        const places = [...cuts, stream.length]
          .map((at) => at % (stream.length + 1))
          .sort((a, b) => a - b)
        const pieces: string[] = []
        let from = 0
        for (const to of places) {
          pieces.push(stream.slice(from, to))
          from = to
        }
        pieces.push(stream.slice(from))
        expect(await ask(pieces, messages.length)).toBe(whole)
      },
    ),
    { seed: 7, numRuns: 60 },
  )
  await rig.close()
})

/** All responses are there; the last one's body too, unless it answers HEAD. */
function splitWithHeads(text: string, sent: string): boolean {
  if (sent.includes('HEAD')) return text.endsWith('\r\n\r\n') || /\r\n\r\n[^\r]+$/.test(text)
  return splitResponses(text).join('') === text
}
