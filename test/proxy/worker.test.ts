import { execFile } from 'node:child_process'
import { get, request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ConfigChannel } from '../../src/wire/channel.ts'
import { eventually } from '../support/wait-for.ts'
import { freePort, hold } from './free-port.ts'
import { backend, listener, openProxy, openUpstream, route } from './running-proxy.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A proxy with one upstream that answers with the path. */
async function open(options: Parameters<typeof openProxy>[0] = {}) {
  const upstream = await openUpstream((incoming, answer) => answer.end(`at ${incoming.url}`))
  cleanups.push(upstream.close)
  const running = await openProxy(options)
  cleanups.push(running.close)
  const port = await freePort()
  const shop = [listener('web', port), route('shop', '/', ['web']), backend(upstream.port)]
  return { ...running, port, shop }
}

/** A request on a connection of its own. */
function fetchOnce(port: number, path = '/'): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (chunk) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    }).on('error', reject)
  })
}

/** The value of a metric, added up over the series whose labels hold the text. */
function metric(text: string, name: string, labels = ''): number {
  const lines = text.split('\n').filter((line) => line.replace(/[{ ].*/, '') === name)
  const values = lines.filter((line) => line.includes(labels)).map((line) => line.split(' ').at(-1))
  return values.reduce((sum, value) => sum + Number(value), 0)
}

describe('a proxy with one worker', () => {
  it('is ready once the first configuration is in force and its ports are bound', async () => {
    const { proxy, publish, readiness, answers, events, shop, port } = await open()
    expect(await readiness()).toEqual([500, 'not ready, pending: configuration of worker 0\n'])
    const sequence = publish(shop)
    await proxy.ready
    expect(await readiness()).toEqual([200, 'ready\n'])
    expect(answers).toEqual([['ack', 'local', sequence]])
    expect(proxy.ports()).toEqual([port])
    expect(events).toEqual([{ type: 'listening', port }, { type: 'ready' }])
    expect(await fetchOnce(port, '/a?b=c')).toEqual({ status: 200, body: 'at /a?b=c' })
  })

  it('is ready with an empty configuration, and follows it from there', async () => {
    const { proxy, publish, shop, port } = await open()
    publish([])
    await proxy.ready
    publish(shop)
    await eventually(async () => expect(await fetchOnce(port)).toMatchObject({ status: 200 }))
    publish([], [shop[1]?.key ?? ''])
    await eventually(async () => expect(await fetchOnce(port)).toMatchObject({ status: 404 }))
    publish([], [shop[0]?.key ?? ''])
    await eventually(() => expect(fetchOnce(port)).rejects.toThrow('ECONNREFUSED'))
    expect(proxy.pending()).toEqual([])
  })

  it('writes one access log line a request as text', async () => {
    const { proxy, publish, shop, port, lines } = await open()
    publish(shop)
    await proxy.ready
    await fetchOnce(port, '/a?b=c')
    await eventually(() => expect(lines()).toHaveLength(1))
    expect(lines()[0]).toMatch(
      new RegExp(
        '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z\tinfo\trequest' +
          ' gateway=default/public listener=web route=default/shop endpoint=127\\.0\\.0\\.1:\\d+' +
          ` src\\.addr=127\\.0\\.0\\.1:\\d+ http\\.method=GET http\\.host=127\\.0\\.0\\.1:${port}` +
          ' http\\.path=/a\\?b=c http\\.version=HTTP/1\\.1 http\\.status=200 protocol=http' +
          ' duration=\\d+ms$',
      ),
    )
  })

  it('writes the access log as JSON where asked to, errors with their reason', async () => {
    const { proxy, publish, shop, port, lines } = await open({ accessLogFormat: 'json' })
    publish([...shop.slice(0, 1)])
    await proxy.ready
    await fetchOnce(port, '/missing')
    await eventually(() => expect(lines()).toHaveLength(1))
    expect(JSON.parse(lines()[0] ?? '')).toMatchObject({
      level: 'info',
      scope: 'request',
      gateway: 'default/public',
      listener: 'web',
      'http.path': '/missing',
      'http.status': 404,
      reason: 'NotFound',
      error: expect.stringContaining('route'),
    })
  })

  it('counts requests with their labels, times and bytes', async () => {
    const { proxy, publish, shop, port, scrape } = await open()
    publish(shop)
    await proxy.ready
    await fetchOnce(port, '/12')
    await fetchOnce(port, '/34')
    const text = await scrape()
    const labels =
      'backend="default/upstream",protocol="http",method="GET",status="200",reason="Upstream",' +
      `bind="${port}/default/public",gateway="default/public",listener="web",` +
      'route="default/shop",route_rule="unknown"'
    expect(text).toContain(`sluice_requests_total{${labels}} 2\n`)
    expect(text).toContain(`sluice_response_bytes_total{${labels}} 12\n`)
    expect(text).toContain(`sluice_request_duration_seconds_count{${labels}} 2\n`)
    expect(text).toContain(`sluice_request_duration_seconds_bucket{${labels},le="+Inf"} 2\n`)
    expect(text).toContain('sluice_build_info{tag="1.2.3"} 1\n')
    expect(metric(text, 'sluice_downstream_connections_total')).toBe(2)
    const connects = metric(text, 'sluice_upstream_connect_duration_seconds_count', 'plaintext')
    expect(connects).toBe(metric(text, 'sluice_upstream_connections_total'))
    expect(connects).toBeGreaterThan(0)
    expect(metric(text, 'sluice_downstream_sent_bytes_total')).toBeGreaterThan(12)
    expect(metric(text, 'sluice_config_sequence')).toBe(1)
    expect(metric(text, 'sluice_workers')).toBe(1)
  })

  it('serves its other ports while one is taken, says so, and recovers', async () => {
    const { proxy, publish, shop, port, readiness, answers, scrape } = await open()
    const taken = await freePort()
    const stranger = await hold(taken)
    cleanups.push(() => stranger.close())
    const key = 'listener/Gateway/default/public/other'
    publish([...shop, listener('other', taken), route('more', '/', ['other'])])
    await eventually(() => expect(answers).toHaveLength(2))
    expect(answers).toEqual([
      ['reject', 'local', 1, key, 'port_in_use', expect.stringContaining('EADDRINUSE')],
      ['ack', 'local', 1],
    ])
    expect(await fetchOnce(port)).toMatchObject({ status: 200 })
    expect(await readiness()).toEqual([500, `not ready, pending: port ${taken}\n`])
    expect(metric(await scrape(), 'sluice_config_rejected_resources', 'port_in_use')).toBe(1)
    await new Promise((resolve) => stranger.close(resolve))
    await proxy.ready
    expect(await fetchOnce(taken)).toMatchObject({ status: 200 })
    expect(answers.slice(2)).toEqual([
      ['recover', 'local', 1, key],
      ['ack', 'local', 1],
    ])
  })

  it('survives a change set that cannot be read, and reports it', async () => {
    const { channel, proxy, publish, shop, port, events } = await open({})
    publish(shop)
    await proxy.ready
    const bytes = new Uint8Array(new SharedArrayBuffer(3))
    bytes.set([18, 200, 1])
    const broken: ConfigChannel = {
      subscribe(receive) {
        const end = channel.subscribe(receive)
        receive({ sequence: 9, bytes })
        return end
      },
      ack: () => undefined,
      reject: () => undefined,
      recover: () => undefined,
    }
    const second = await openProxy({ channel: broken })
    cleanups.push(second.close)
    await eventually(() =>
      expect(second.events).toContainEqual({
        type: 'fault',
        worker: 0,
        message: expect.stringContaining('change set 9'),
      }),
    )
    expect(events.filter(({ type }) => type === 'worker-died')).toEqual([])
    expect(second.events.filter(({ type }) => type === 'worker-died')).toEqual([])
    publish([listener('late', await freePort())])
    expect(await fetchOnce(port)).toMatchObject({ status: 200 })
  })

  it('shows what it was told on the admin address, and takes a wish to end', async () => {
    const { proxy, publish, shop, events } = await open()
    publish(shop)
    await proxy.ready
    const admin = `http://${proxy.addresses.admin}`
    const dump = (await (await fetch(`${admin}/config_dump`)).json()) as Record<string, unknown>
    expect(dump).toMatchObject({
      version: '1.2.3',
      published: 1,
      sequence: 1,
      resources: { route: [{ key: 'route/HTTPRoute/default/shop/0' }] },
    })
    await fetch(`${admin}/quitquitquit`, { method: 'POST' })
    expect(events).toContainEqual({ type: 'quit-requested' })
  })

  it('refuses to start where one of its own addresses is taken', async () => {
    const { proxy } = await open()
    await expect(openProxy({ statsAddress: proxy.addresses.stats ?? '' })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining('stats address'),
    })
  })
})

describe('draining', () => {
  /** An upstream that answers when told to. */
  async function openSlow(drain: { minMs: number; maxMs: number }) {
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let arrived = () => {}
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve
    })
    const upstream = await openUpstream(async (_incoming, answer) => {
      arrived()
      await held
      answer.end('late')
    })
    cleanups.push(upstream.close, release)
    const running = await openProxy({ drain })
    cleanups.push(running.close)
    const port = await freePort()
    running.publish([listener('web', port), route('shop', '/', ['web']), backend(upstream.port)])
    await running.proxy.ready
    return { ...running, port, arrival, release }
  }

  it('ends what is in flight, takes nothing new, and loses no log line', async () => {
    const { proxy, port, arrival, release, readiness, lines } = await openSlow({
      minMs: 0,
      maxMs: 20_000,
    })
    const inFlight = fetchOnce(port, '/slow')
    await arrival
    const drained = proxy.drain()
    expect(await readiness()).toEqual([500, 'not ready, pending: shutdown\n'])
    await eventually(() => expect(fetchOnce(port)).rejects.toThrow('ECONNREFUSED'))
    release()
    expect(await inFlight).toEqual({ status: 200, body: 'late' })
    await drained
    expect(lines()).toEqual([expect.stringContaining('http.path=/slow')])
    expect(proxy.pending()).toEqual(['shutdown'])
  })

  it('accepts for the minimum before it closes ports, telling clients to go', async () => {
    const { proxy, port, release, readiness } = await openSlow({ minMs: 60_000, maxMs: 60_000 })
    release()
    const before = await fetch(`http://127.0.0.1:${port}/`)
    expect([before.status, before.headers.get('connection')]).toEqual([200, null])
    await before.text()
    proxy.drain()
    expect((await readiness())[0]).toBe(500)
    await eventually(async () => {
      const during = await fetch(`http://127.0.0.1:${port}/`)
      await during.text()
      expect([during.status, during.headers.get('connection')]).toEqual([200, 'close'])
    })
  })

  it('cuts what takes longer than the maximum', async () => {
    const { proxy, port, arrival } = await openSlow({ minMs: 0, maxMs: 200 })
    const inFlight = fetchOnce(port, '/never')
    inFlight.catch(() => undefined)
    await arrival
    await proxy.drain()
    await expect(inFlight).rejects.toThrow()
  })
})

describe.runIf(process.platform === 'linux')('a proxy with two workers', () => {
  const threads: Worker[] = []
  const collect = (thread: Worker) => threads.push(thread)
  beforeEach(() => {
    threads.length = 0
    process.on('worker', collect)
  })
  afterEach(() => {
    process.off('worker', collect)
  })

  it('shares its ports between them and adds up what they count', async () => {
    const { proxy, publish, shop, port, scrape, lines, answers } = await open({ workers: 2 })
    expect(proxy.workers).toBe(2)
    publish(shop)
    await proxy.ready
    expect(answers).toEqual([['ack', 'local', 1]])
    await Promise.all(Array.from({ length: 60 }, (_, at) => fetchOnce(port, `/${at}`)))
    expect(metric(await scrape(), 'sluice_requests_total')).toBe(60)
    await eventually(() => expect(lines()).toHaveLength(60))
    const paths = lines().map((line) => / http\.path=\/(\d+) /.exec(line)?.[1])
    expect(new Set(paths).size).toBe(60)
  })

  it('replaces one that dies: its ports stay served, it gets everything, nothing is uncounted', async () => {
    const { proxy, publish, shop, port, scrape, events, answers } = await open({ workers: 2 })
    publish(shop)
    await proxy.ready
    for (let at = 0; at < 20; at++) await fetchOnce(port)
    expect(metric(await scrape(), 'sluice_requests_total')).toBe(20)
    const [first, second] = threads
    await first?.terminate()
    expect(await fetchOnce(port)).toMatchObject({ status: 200 })
    const sequence = publish([])
    await eventually(() => expect(answers).toContainEqual(['ack', 'local', sequence]))
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'worker-died', worker: 0, restartMs: 0 }),
    )
    expect(threads).toHaveLength(3)
    await second?.terminate()
    await eventually(() => expect(threads).toHaveLength(4))
    await eventually(async () => expect(await fetchOnce(port)).toMatchObject({ status: 200 }))
    const text = await scrape()
    expect(metric(text, 'sluice_requests_total')).toBeGreaterThanOrEqual(20)
    expect(metric(text, 'sluice_worker_restarts_total')).toBe(2)
    expect(events.filter(({ type }) => type === 'port-lost')).toEqual([])
  })

  it('takes its time with a worker that dies again at once, and is not ready without any', async () => {
    const { proxy, publish, shop, port, events, readiness } = await open({ workers: 1 })
    publish(shop)
    await proxy.ready
    const restarts = () => events.flatMap((event) => ('restartMs' in event ? event.restartMs : []))
    for (const life of [1, 2]) {
      await eventually(() => expect(threads).toHaveLength(life))
      await threads[life - 1]?.terminate()
    }
    expect(restarts()).toEqual([0, 400])
    expect(await readiness()).toEqual([500, 'not ready, pending: workers\n'])
    await eventually(async () => expect(await fetchOnce(port)).toMatchObject({ status: 200 }))
    expect(await readiness()).toEqual([200, 'ready\n'])
  })

  it('finds a stranger on its port although the system would share it', async () => {
    const { publish, answers } = await open({ workers: 2 })
    const { createServer } = await import('node:net')
    const stranger = createServer()
    const taken = await freePort()
    await new Promise<void>((resolve) =>
      stranger.listen({ host: '127.0.0.1', port: taken, reusePort: true }, resolve),
    )
    cleanups.push(() => stranger.close())
    publish([listener('web', taken)])
    await eventually(() => expect(answers).toHaveLength(2))
    expect(answers[0]).toMatchObject([
      'reject',
      'local',
      1,
      expect.anything(),
      'port_in_use',
      expect.anything(),
    ])
  })
})

describe('the access log of a process that ends at once', () => {
  it('has every request that was answered', async () => {
    const script = fileURLToPath(new URL('./end-at-once.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [script])
    const lines = stdout.split('\n').filter((line) => line.includes(' http.path='))
    expect(lines.map((line) => / http\.path=(\S+)/.exec(line)?.[1])).toEqual(['/0', '/1', '/2'])
  })
})

describe('a worker whose core has trapped', () => {
  it('is replaced after it has answered, and what it counted stays', async () => {
    const [preload, script] = ['./trapping-core.ts', './end-by-trap.ts'].map((file) =>
      fileURLToPath(new URL(file, import.meta.url)),
    )
    const { stdout } = await promisify(execFile)(process.execPath, [
      `--import=${preload}`,
      `${script}`,
    ])
    const { statuses, events, metrics } = JSON.parse(stdout)
    expect(statuses).toEqual([200, 500, 200])
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'fault', message: expect.stringContaining('core: ') }),
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'worker-died', restartMs: 0 }))
    expect(metric(metrics, 'sluice_core_traps_total')).toBe(1)
    expect(metric(metrics, 'sluice_worker_restarts_total')).toBe(1)
    expect(metric(metrics, 'sluice_requests_total', 'status="200"')).toBe(2)
  })
})

describe('a request that cannot be read', () => {
  it('is logged and counted as such', async () => {
    const { proxy, publish, shop, port, lines, scrape } = await open()
    publish(shop)
    await proxy.ready
    const status = await new Promise<number>((resolve, reject) => {
      const bad = request({ host: '127.0.0.1', port, agent: false, headers: { te: 'a' } }, (res) =>
        resolve(res.statusCode ?? 0),
      ).on('error', reject)
      bad.setHeader('transfer-encoding', 'gzip, chunked')
      bad.end('x')
    })
    expect(status).toBeGreaterThanOrEqual(400)
    await eventually(() => expect(lines()).toHaveLength(1))
    expect(lines()[0]).toContain(`http.status=${status} `)
    expect(lines()[0]).toContain(' reason=InvalidRequest ')
    expect(metric(await scrape(), 'sluice_malformed_requests_total')).toBe(1)
  })
})
