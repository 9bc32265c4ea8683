import { beforeEach, describe, expect, it } from 'vitest'
import { RawConnection, RawUpstream } from '../proxy/engine-rig.ts'
import { DnsServer } from '../support/dns-server.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

// What backends see of the gateway on the wire, byte by byte.

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const routed = (name: string, more: object = {}) =>
  httpRoute(name, {
    hostnames: [`${name}.example.com`],
    rules: [{ backendRefs: [toBackend('raw')], ...more }],
  })
const ask = (name: string, line = 'GET / HTTP/1.1', body = '') =>
  `${line}\r\nHost: ${name}.example.com\r\n${body === '' ? '' : `Content-Length: ${body.length}\r\n`}\r\n${body}`
const isWhole = ({ text }: RawConnection) => text.endsWith('\r\n\r\n') || text.endsWith('hello')

/** Answers every request with the text that is made for it. */
function answer(make: (count: number, connection: RawConnection) => string | undefined): void {
  let count = 0
  raw.onData = (connection) => {
    if (!isWhole(connection)) return
    connection.text = ''
    const text = make(++count, connection)
    if (text === undefined) connection.socket.destroy()
    else connection.write(text)
  }
}

/** Milliseconds are the rule's: nothing is measured here. */
const limits = { request: { request: '200ms' }, attempt: { backendRequest: '200ms' } }

const dns = useFixture(() => new DnsServer().start())
const raw = useFixture(() => RawUpstream.start())
const mirror = useFixture(() => RawUpstream.start())
const named = useUpstream('named')
const port = await freePort()
const running = useGateway(() => {
  dns.hosts.set('moving.rules.test', ['127.0.0.1'])
  const atName = (name: string, host: string) => ({
    ...staticBackend(name, named.port),
    spec: { static: { host, port: named.port } },
  })
  const toNamed = (name: string) =>
    httpRoute(name, {
      hostnames: [`${name}.example.com`],
      rules: [{ backendRefs: [toBackend(name)] }],
    })
  return {
    args: ['--name-servers', dns.address],
    manifests: [
      gateway(port),
      staticBackend('raw', raw.address.port),
      staticBackend('mirror', mirror.address.port),
      atName('moving', 'moving.rules.test'),
      atName('nowhere', 'nowhere.rules.test'),
      routed('raw'),
      routed('whole', { timeouts: limits.request }),
      routed('attempt', { timeouts: limits.attempt }),
      routed('copied', {
        filters: [{ type: 'RequestMirror', requestMirror: { backendRef: toBackend('mirror') } }],
      }),
      toNamed('moving'),
      toNamed('nowhere'),
    ],
  }
})

describe('backend connections', () => {
  beforeEach(() => {
    // Each case begins without connections.
    for (const { socket } of raw.connections) socket.destroy()
    raw.connections.length = 0
  })

  it('are reused, the most recent first', async () => {
    answer(() => ok)
    const clients = await Promise.all([1, 2, 3].map(() => RawConnection.connect(port)))
    const waiting: RawConnection[] = []
    raw.onData = (connection) => {
      if (!isWhole(connection)) return
      connection.text = ''
      waiting.push(connection)
    }
    for (const client of clients) client.write(ask('raw'))
    await waitFor('three connections', () => waiting.length === 3)
    for (const [index, connection] of waiting.entries()) {
      connection.write(ok)
      // The client whose connection it is knows when it is back.
      await waitFor('an answer', () => clients.filter(({ text }) => text !== '').length > index)
    }
    const used: number[] = []
    answer((_, connection) => {
      used.push(waiting.indexOf(connection))
      return ok
    })
    for (let count = 2; count < 6; count++) {
      clients[0]?.write(ask('raw'))
      await clients[0]?.responses(count)
    }
    expect(used).toEqual([2, 2, 2, 2])
    expect(raw.connections).toHaveLength(3)
  })

  it.each([
    [
      'sends Connection: close',
      'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok',
    ],
    ['speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
    [
      'sends bytes after the response',
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK',
    ],
  ])('are not reused if the backend %s, and the client keeps its connection', async (_, text) => {
    answer(() => text)
    const client = await RawConnection.connect(port)
    for (let count = 1; count < 3; count++) {
      client.write(ask('raw'))
      await client.responses(count)
    }
    expect(client.text).not.toMatch(/connection: close|HTTP\/1\.0/i)
    expect(raw.connections).toHaveLength(2)
    expect(client.ended).toBe(false)
  })

  it.each([
    ['GET / HTTP/1.1', '', 3, '200'],
    ['PUT / HTTP/1.1', 'hello', 3, '200'],
    ['POST / HTTP/1.1\r\nIdempotency-Key: "a"', 'hello', 3, '200'],
    ['PUT / HTTP/1.1\r\nContent-Length: 0', '', 3, '200'],
    ['POST / HTTP/1.1', 'hello', 2, '503'],
    ['PATCH / HTTP/1.1', 'hello', 2, '503'],
  ])(
    'that break on reuse: %s %s is sent %i times in all, and answered %s',
    async (line, body, times, last) => {
      let seen = 0
      answer((count) => {
        seen = count
        return count === 2 ? undefined : ok
      })
      const client = await RawConnection.connect(port)
      for (let count = 1; count < 3; count++) {
        client.write(ask('raw', line, body))
        await client.responses(count)
      }
      const statuses = [...client.text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status)
      expect([statuses, seen]).toEqual([['200', last], times])
    },
  )
})

describe('timeouts of a rule', () => {
  it.each(['whole', 'attempt'])('apply until the response is complete (%s)', async (name) => {
    answer(() => 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345')
    const client = await RawConnection.connect(port)
    client.write(ask(name))
    await client.untilEnd()
    expect(client.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*12345$/)
    // The backend connection is closed, too.
    await raw.connections.at(-1)?.untilEnd()
  })
})

describe('mirrored requests', () => {
  it('have chunked bodies of any size', async () => {
    raw.onData = (connection) => {
      if (connection.text.endsWith('0\r\n\r\n')) connection.write(ok)
    }
    mirror.onData = (connection) => {
      if (connection.text.endsWith('0\r\n\r\n')) connection.write(ok)
    }
    const client = await RawConnection.connect(port)
    client.write(
      'POST / HTTP/1.1\r\nHost: copied.example.com\r\nTransfer-Encoding: chunked\r\n\r\n',
    )
    const piece = 'abcdefgh'.repeat(2_000)
    for (let count = 0; count < 10; count++) client.write(`3e80\r\n${piece}\r\n`)
    client.write('0\r\n\r\n')
    await client.responses(1)
    const copy = await waitFor('the copy', () =>
      mirror.connections.find(({ text }) => text.endsWith('0\r\n\r\n')),
    )
    const bodyOf = (text: string) =>
      text
        .slice(text.indexOf('\r\n\r\n'))
        .replace(/\r\n[0-9a-f]+\r\n/g, '')
        .replaceAll('\r\n', '')
    expect(bodyOf(copy.text)).toContain(piece.repeat(10))
  })
})

describe('host names of backends', () => {
  const get = (name: string) => running.send(port, { host: `${name}.example.com` })
  const askedFor = (name: string) => dns.asked.filter((one) => one === `${name}.rules.test`).length

  it('keep their last addresses while DNS fails', async () => {
    expect((await get('moving')).status).toBe(200)
    dns.isBroken = true
    const before = askedFor('moving')
    // The answer of a second ago is old by then, and the next one is an error.
    await waitFor('another lookup', async () => {
      expect((await get('moving')).status).toBe(200)
      return askedFor('moving') > before + 1
    })
    for (let count = 0; count < 3; count++) expect((await get('moving')).status).toBe(200)
    dns.isBroken = false
  })

  it('that do not resolve are looked up once, however many requests wait', async () => {
    const before = askedFor('nowhere')
    const answers = await Promise.all(Array.from({ length: 20 }, () => get('nowhere')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]))
    // Two address families, and twice if the lookup for the configuration failed long before.
    expect(askedFor('nowhere') - before).toBeLessThanOrEqual(4)
  })
})
