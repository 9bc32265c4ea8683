import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  clientPreface,
  frameTypes,
  goawayFrame,
  pingFrame,
  rstStreamFrame,
  settingsFrame,
} from '../../src/engines/http/http2/frames.ts'
import { waitFor } from '../support/wait-for.ts'
import { ask, rig } from './engine-http2-upstream-rig.ts'
import { RawConnection, RawUpstream } from './engine-rig.ts'
import { data, endHeaders, endStream, type Field, FrameClient, headers } from './frame-client.ts'

describe('an HTTP/2 upstream scripted frame by frame', () => {
  let upstream: RawUpstream
  const ok: readonly Field[] = [[':status', '200']]

  beforeEach(async () => {
    upstream = await RawUpstream.start()
    rig.plane.upstream = { ...upstream.address, isHttp2: true }
  })
  afterEach(() => upstream.close())

  /** Answers each connection's n-th request; requests are counted by their HEADERS. */
  const answer = (reply: (connection: number, request: number, stream: number) => string) => {
    const clients = new Map<RawConnection, FrameClient>()
    const counted = new Map<RawConnection, number>()
    upstream.onConnection = (connection) => connection.write(settingsFrame([]))
    upstream.onData = (connection) => {
      if (!connection.text.startsWith(clientPreface)) return
      let client = clients.get(connection)
      if (client === undefined) {
        client = new FrameClient(connection, clientPreface.length)
        clients.set(connection, client)
      }
      client.parse()
      const requests = client.frames.filter(({ type }) => type === frameTypes.headers)
      const at = upstream.connections.indexOf(connection)
      for (let next = counted.get(connection) ?? 0; next < requests.length; next++) {
        counted.set(connection, next + 1)
        connection.write(reply(at, next, requests[next]?.stream ?? 0))
      }
    }
  }

  it.each<[string, (stream: number) => string, string]>([
    ['no :status', (id) => headers(id, [['x', 'y']]), 'upstream_malformed'],
    ['data before a head', (id) => data(id, 'x', endStream), 'upstream_malformed'],
    [
      'data after an interim head',
      (id) => headers(id, [[':status', '103']], endHeaders) + data(id, 'x', endStream),
      'upstream_malformed',
    ],
    ['a bad :status', (id) => headers(id, [[':status', '20']]), 'upstream_malformed'],
    ['101', (id) => headers(id, [[':status', '101']]), 'upstream_malformed'],
    ['an uppercase name', (id) => headers(id, [...ok, ['X', 'y']]), 'upstream_malformed'],
    [
      'a line end in a value',
      (id) => headers(id, [...ok, ['x', 'y\r\nz: a']]),
      'upstream_malformed',
    ],
    [
      'transfer-encoding',
      (id) => headers(id, [...ok, ['transfer-encoding', 'chunked']]),
      'upstream_malformed',
    ],
    [
      'endless interim responses',
      (id) => headers(id, [[':status', '100']], endHeaders).repeat(40),
      'upstream_malformed',
    ],
    [
      'less than content-length',
      (id) => headers(id, [...ok, ['content-length', '5']]),
      'upstream_malformed',
    ],
    ['a malformed header block', () => '\0\0\x01\x01\x05\0\0\0\x01\x80', 'upstream_malformed'],
    ['a PUSH_PROMISE frame', () => '\0\0\x04\x05\x04\0\0\0\x01\0\0\0\x02', 'upstream_malformed'],
    ['a reset', (id) => rstStreamFrame(id, 2), 'upstream_reset'],
  ])('%s before the response is an upstream error', async (_title, reply, code) => {
    answer((_connection, _request, stream) => reply(stream))
    const { status } = await ask({})
    expect(status).toBe(code === 'upstream_reset' ? 503 : 502)
    expect(rig.plane.done).toMatchObject([{ error: code }])
  })

  it('a reset after the end of a response does not truncate it, however slowly the client reads', async () => {
    const body = 'x'.repeat(100_000)
    const pieces = body.match(/.{1,10000}/g) ?? []
    answer(
      (_connection, _request, stream) =>
        headers(stream, ok, endHeaders) +
        pieces.map((piece) => data(stream, piece)).join('') +
        data(stream, '', endStream) +
        rstStreamFrame(stream, 0) +
        pingFrame('was read', false),
    )
    let relay: (() => void) | undefined
    rig.plane.response = (exchange) => {
      relay = () => exchange.relay()
    }
    const asked = ask({})
    // Everything has been read when the ping is answered.
    await waitFor('the answer', () => upstream.connections[0]?.text.endsWith('was read'))
    relay?.()
    const got = await asked
    expect([got.status, got.body.toString() === body]).toEqual([200, true])
    expect(rig.plane.done).toMatchObject([{ error: undefined, ending: 'complete' }])
    expect(rig.engine.counters.readBuffersInUse).toBeLessThanOrEqual(1)
  })

  it('a stream that the upstream refused is retried on another connection', async () => {
    answer((connection, _request, stream) =>
      connection === 0
        ? rstStreamFrame(stream, 7)
        : headers(stream, ok, endHeaders) + data(stream, 'second', endStream),
    )
    const got = await ask({ method: 'POST' }, 'body')
    expect([got.status, got.body.toString()]).toEqual([200, 'second'])
    expect(upstream.connections).toHaveLength(2)
  })

  it('after GOAWAY, processed streams finish and the others are retried elsewhere', async () => {
    answer((connection, request, stream) => {
      if (connection > 0)
        return headers(stream, ok, endHeaders) + data(stream, 'elsewhere', endStream)
      if (request === 0) return ''
      return `${goawayFrame(1, 0, '')}${headers(1, ok, endHeaders)}${data(1, 'here', endStream)}`
    })
    const first = ask({})
    await waitFor(
      'the first',
      () =>
        upstream.connections[0]?.text.includes('PRI') === true &&
        rig.engine.counters.upstreamConnectionsOpen === 1,
    )
    const second = ask({ method: 'POST' }, 'body')
    expect((await first).body.toString()).toBe('here')
    expect((await second).body.toString()).toBe('elsewhere')
    await waitFor('the end of the first', () => rig.engine.counters.upstreamConnectionsOpen === 1)
  })

  it('a reset stream truncates its own response only', async () => {
    answer((_connection, request, stream) =>
      request === 0
        ? headers(stream, ok, endHeaders) + data(stream, 'begin')
        : headers(stream, ok, endHeaders) + data(stream, 'whole', endStream),
    )
    const client = await RawConnection.connect(rig.port)
    client.write('GET /cut HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.until(() => client.text.includes('begin'))
    upstream.connections[0]?.write(rstStreamFrame(1, 2))
    await client.untilEnd()
    expect(client.text.endsWith('0\r\n\r\n')).toBe(false)
    expect((await ask({})).body.toString()).toBe('whole')
    expect(rig.plane.done[0]).toMatchObject({ ending: 'upstream-cut', error: 'upstream_reset' })
    expect(upstream.connections).toHaveLength(1)
  })
})
