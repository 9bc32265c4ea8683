import { execFile } from 'node:child_process'
import { request } from 'node:http'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import type { ConfigChannel } from '../../src/control/wire/channel.ts'
import { eventually } from '../support/wait-for.ts'
import { freePort, hold } from './free-port.ts'
import { listener, openProxy, route } from './running-proxy.ts'
import { cleanups, fetchOnce, metric, open, openInParts } from './worker-rig.ts'

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

  it('writes one access log line per request as text', async () => {
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

  it('writes the access log as JSON, errors with their reason', async () => {
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

  it('serves its other ports while one is in use, reports it, and recovers', async () => {
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

  it('binds its ports once the last part of the first state is applied', async () => {
    const { send, acks, proxy, scrape, shop, port } = await openInParts()
    send(shop.slice(0, 1), true)
    send(shop.slice(1), true)
    expect(metric(await scrape(), 'sluice_config_sequence')).toBe(-1)
    await expect(fetchOnce(port)).rejects.toThrow('ECONNREFUSED')
    send([route('last', '/last', ['web'])])
    await proxy.ready
    expect(acks).toEqual([1])
    expect(await fetchOnce(port)).toMatchObject({ status: 200 })
    expect(await fetchOnce(port, '/last')).toMatchObject({ status: 200 })
  })

  it('serves nothing of a first state of which a part cannot be read', async () => {
    const { send, sendBytes, acks, scrape, events, shop, port } = await openInParts()
    send(shop, true)
    sendBytes(Uint8Array.of(18, 200, 1), true)
    send([route('last', '/last', ['web'])])
    await eventually(() => expect(events.map(({ type }) => type)).toEqual(['fault']))
    for (let round = 0; round < 10; round++) await scrape()
    await expect(fetchOnce(port)).rejects.toThrow('ECONNREFUSED')
    expect(acks).toEqual([])
  })

  it('shows its configuration on the admin address, and shuts down on request', async () => {
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

  it('refuses to start if one of its own addresses is in use', async () => {
    const { proxy } = await open()
    await expect(openProxy({ statsAddress: proxy.addresses.stats ?? '' })).rejects.toMatchObject({
      code: 'port_in_use',
      message: expect.stringContaining('stats address'),
    })
  })
})

describe('a worker whose core has trapped', () => {
  it('is replaced after it has answered, and its counters are kept but not its gauges', async () => {
    const [preload, script] = ['./trapping-core.ts', './end-by-trap.ts'].map((file) =>
      fileURLToPath(new URL(file, import.meta.url)),
    )
    const { stdout } = await promisify(execFile)(process.execPath, [
      `--import=${preload}`,
      `${script}`,
    ])
    const { statuses, events, before, metrics } = JSON.parse(stdout)
    expect(statuses).toEqual([200, 500, 200])
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'fault', message: expect.stringContaining('core: ') }),
    )
    expect(events).toContainEqual(expect.objectContaining({ type: 'worker-died', restartMs: 0 }))
    expect(metric(metrics, 'sluice_core_traps_total')).toBe(1)
    expect(metric(metrics, 'sluice_worker_restarts_total')).toBe(1)
    expect(metric(metrics, 'sluice_requests_total', 'status="200"')).toBe(2)
    expect(metric(before, 'sluice_downstream_http2_connections')).toBe(1)
    expect(metric(metrics, 'sluice_downstream_http2_connections')).toBe(0)
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
