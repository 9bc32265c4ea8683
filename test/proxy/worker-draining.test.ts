import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/wait-for.ts'
import { freePort } from './free-port.ts'
import { backend, listener, openProxy, openUpstream, route } from './running-proxy.ts'
import { cleanups, fetchOnce, metric, open } from './worker-rig.ts'

describe('a draining worker', () => {
  /** An upstream that answers when the test releases it. */
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

  it('finishes requests in flight, accepts no new ones, and loses no log line', async () => {
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

  it('accepts requests with Connection: close for the minimum time before it closes its ports', async () => {
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

  it('closes connections that take longer than the maximum time', async () => {
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

  it('replaces a worker that dies, with its configuration and its counts', async () => {
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

  it('backs off if a worker dies repeatedly, and is not ready without workers', async () => {
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

  it('reports a port that a foreign process holds, even if the system would share it', async () => {
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
  it('has a line for every answered request', async () => {
    const script = fileURLToPath(new URL('./end-at-once.ts', import.meta.url))
    const { stdout } = await promisify(execFile)(process.execPath, [script])
    const lines = stdout.split('\n').filter((line) => line.includes(' http.path='))
    expect(lines.map((line) => / http\.path=(\S+)/.exec(line)?.[1])).toEqual(['/0', '/1', '/2'])
  })
})
