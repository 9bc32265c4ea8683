import { statSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort, RunningGateway, sluice, startGateway } from '../support/gateway.ts'
import { keepAliveAgent, send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

let a: Upstream
let b: Upstream
beforeAll(async () => {
  ;[a, b] = await Promise.all([startUpstream('a'), startUpstream('b')])
  return async () => void (await Promise.all([a.close(), b.close()]))
})

let running: RunningGateway | undefined
const disposables: (() => Promise<unknown>)[] = []
afterEach(async () => {
  await running?.dispose()
  running = undefined
  await Promise.all(disposables.splice(0).map((dispose) => dispose()))
})

async function start(
  manifests: Record<string, string>,
  args: string[] = [],
): Promise<RunningGateway> {
  running = await startGateway({ manifests, args })
  return running
}

const routeTo = (name: string, more: object = {}) =>
  manifest(httpRoute('app', { rules: [{ backendRefs: [toBackend(name)] }], ...more }))

const base = (port: number) =>
  manifest(gateway(port), staticBackend('a', a.port), staticBackend('b', b.port))

const isFrom =
  (name: string) =>
  ({ body }: { body: string }) =>
    body.includes(`"upstream":"${name}"`)

interface Replayed {
  readonly digests: { readonly desired: string; readonly status: string }
  readonly different: readonly unknown[]
  readonly published: number
}

async function replayed(logFile: string): Promise<Replayed> {
  const { stdout, stderr } = await sluice('replay', '--log-file', logFile, '-o', 'json')
  expect(stderr).toBe('')
  return JSON.parse(stdout) as Replayed
}

describe('edits of manifests', () => {
  it('follows a changed, a new and a removed file without a restart', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    expect((await send(port)).body).toContain('"upstream":"a"')
    gw.write('route.yaml', routeTo('b'))
    await gw.sendUntil(port, {}, isFrom('b'))
    gw.write(
      'teapot.yaml',
      manifest(policy('teapot', 'HTTPRoute/app', { traffic: { directResponse: { status: 418 } } })),
    )
    await gw.sendUntil(port, {}, ({ status }) => status === 418)
    gw.remove('teapot.yaml')
    await gw.sendUntil(port, {}, isFrom('b'))
    gw.remove('route.yaml')
    await gw.sendUntil(port, {}, ({ status }) => status === 404)
  })

  it('moves a listener to another port and releases the old one', async () => {
    const [port, other] = await Promise.all([freePort(), freePort()])
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    gw.write('base.yaml', base(other))
    await gw.sendUntil(other, {}, isFrom('a'))
    await waitFor('the old port to close', () =>
      send(port).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
      ),
    )
  })

  it('loses no request while a route is edited under load', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    const agent = keepAliveAgent(8)
    let isDone = false
    const failures: unknown[] = []
    const answered = new Set<string>()
    const client = async () => {
      while (!isDone) {
        try {
          const { status, body } = await send(port, { agent })
          if (status !== 200) failures.push(status)
          answered.add((JSON.parse(body) as { upstream: string }).upstream)
        } catch (error) {
          failures.push(error)
        }
      }
    }
    const clients = Array.from({ length: 8 }, client)
    for (let edit = 0; edit < 20; edit++) {
      const name = edit % 2 === 0 ? 'b' : 'a'
      gw.write('route.yaml', routeTo(name))
      await gw.sendUntil(port, {}, isFrom(name))
    }
    isDone = true
    await Promise.all(clients)
    agent.destroy()
    expect(failures).toEqual([])
    expect([...answered].sort()).toEqual(['a', 'b'])
  })
})

describe('the event log', () => {
  it('[design.replay] [design.actors] replays a run to the digests that it recorded', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    gw.write('route.yaml', routeTo('b'))
    await gw.sendUntil(port, {}, isFrom('b'))
    gw.write(
      'bad.yaml',
      manifest(httpRoute('bad', { rules: [{ backendRefs: [{ name: 'nobody', port: 1 }] }] })),
    )
    await gw.condition('HTTPRoute', 'bad', 'ResolvedRefs', 'False')
    await gw.stop()
    const { different, published, digests } = await replayed(gw.logFile)
    expect(different).toEqual([])
    expect(published).toBeGreaterThan(2)
    expect(digests).toEqual((await replayed(gw.logFile)).digests)
  })

  it('[design.replay] has the same digests after a kill -9 in the middle of edits and a restart', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    await gw.condition('Gateway', 'edge', 'Programmed', 'True')
    for (const name of ['b', 'a', 'b', 'a', 'b']) gw.write('route.yaml', routeTo(name))
    await gw.sendUntil(port, {}, isFrom('b'))
    await gw.kill()
    const before = await replayed(gw.logFile)
    await gw.start()
    expect((await send(port)).body).toContain('"upstream":"b"')
    // The address of the proxy is part of the status, so the new proxy must have come.
    const after = await waitFor('the digests of before', async () => {
      const now = await replayed(gw.logFile)
      return now.digests.status === before.digests.status && now
    })
    expect(after.different).toEqual([])
    expect(after.digests).toEqual(before.digests)
  })

  it('applies edits made while it was stopped, deletions included', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    await gw.stop()
    gw.write('route.yaml', routeTo('b', { hostnames: ['b.example.com'] }))
    await gw.start()
    expect((await send(port, { host: 'b.example.com' })).body).toContain('"upstream":"b"')
    expect((await send(port)).status).toBe(404)
    await gw.stop()
    gw.remove('route.yaml')
    await gw.start()
    expect((await send(port, { host: 'b.example.com' })).status).toBe(404)
  })

  it('serves hundreds of routes, of which some change while it is stopped', async () => {
    const port = await freePort()
    const routes = (count: number, first: string) =>
      Array.from({ length: count }, (_, n) =>
        routeByHost(`r${n}`, toBackend(n === 0 ? first : 'a')),
      )
    const gw = await start({
      'base.yaml': base(port),
      'routes.yaml': manifest(...routes(600, 'a')),
    })
    const from = async (n: number) => {
      const { status, body } = await send(port, { host: `r${n}.example.com` })
      return status === 200 ? /"upstream":"(.)"/.exec(body)?.[1] : status
    }
    expect([await from(0), await from(598), await from(599)]).toEqual(['a', 'a', 'a'])
    await gw.stop()
    gw.write('routes.yaml', manifest(...routes(599, 'b')))
    await gw.start()
    expect([await from(0), await from(598), await from(599)]).toEqual(['b', 'a', 404])
    await gw.stop()
    expect((await replayed(gw.logFile)).different).toEqual([])
  })

  it('is locked against a second process, which reports its path', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port) })
    const second = await sluice('run', '-f', gw.manifests, '--log-file', gw.logFile)
    expect(second.code).toBe(2)
    expect(second.stderr).toContain(`${gw.logFile} is in use by another process`)
    expect(statSync(`${gw.logFile}.lock`).mode & 0o777).toBe(0o600)
  })
})

describe('command line options', () => {
  it.each([
    ['--nats', 'http://nats.example:4222', 'It is not nats://HOST:PORT, or tls://HOST:PORT'],
    ['--session-key-file', '/proc/none', '--session-key-file: ENOENT'],
  ])('%s %s is refused by name', async (option, value, why) => {
    const { code, stderr } = await sluice('run', '-f', 'examples/quickstart', option, value)
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(why) })
    expect(stderr).toContain(option)
  })
})

describe('listener ports', () => {
  it('reports a port in use, serves the others, and recovers', async () => {
    const [taken, free] = await Promise.all([freePort(), freePort()])
    const squatter: Server = createServer()
    await new Promise<void>((resolve) => squatter.listen(taken, '127.0.0.1', resolve))
    const letGo = () => new Promise((resolve) => squatter.close(resolve))
    running = new RunningGateway({
      manifests: {
        'base.yaml': manifest(
          gateway(free, {
            listeners: [
              { name: 'free', port: free, protocol: 'HTTP' },
              { name: 'taken', port: taken, protocol: 'HTTP' },
            ],
          }),
          staticBackend('a', a.port),
        ),
        'route.yaml': routeTo('a'),
      },
    })
    running.launch()
    await running.sendUntil(free, {}, isFrom('a'))
    const condition = await running.condition('Gateway', 'edge', 'Programmed', 'False')
    const gatewayStatus = await running.status('Gateway', 'edge')
    const listeners = gatewayStatus?.listeners as {
      name: string
      conditions: (typeof condition)[]
    }[]
    const broken = listeners.find(({ name }) => name === 'taken')?.conditions
    expect(broken?.find(({ type }) => type === 'Programmed')).toMatchObject({
      status: 'False',
      reason: 'PortUnavailable',
    })
    await letGo()
    await running.sendUntil(taken, {}, isFrom('a'))
    await running.condition('Gateway', 'edge', 'Programmed', 'True')
  })

  it('stays ready while some port is bound, and is not ready if none is', async () => {
    const [port, taken] = await Promise.all([freePort(), freePort()])
    const squatter: Server = createServer()
    await new Promise<void>((resolve) => squatter.listen(taken, '127.0.0.1', resolve))
    const at = (...ports: number[]) => {
      const listeners = ports.map((each) => ({ name: `p${each}`, port: each, protocol: 'HTTP' }))
      return manifest(gateway(port, { listeners }))
    }
    const gw = await start({
      'gateway.yaml': at(port),
      'base.yaml': manifest(staticBackend('a', a.port)),
      'route.yaml': routeTo('a'),
    })
    const probe = /readiness: (http:\S+)/.exec(gw.stderr)?.[1] ?? ''
    const readiness = async () => {
      const answer = await fetch(probe)
      return `${answer.status} ${await answer.text()}`
    }
    const becomes = (text: string) => waitFor(text, async () => (await readiness()) === `${text}\n`)
    expect(await readiness()).toBe('200 ready\n')
    gw.write('gateway.yaml', at(port, taken))
    await becomes(`200 ready, without: port ${taken}`)
    await gw.condition('Gateway', 'edge', 'Programmed', 'False')
    expect((await send(port)).status).toBe(200)
    gw.write('gateway.yaml', at(taken))
    await becomes(`500 not ready, pending: port ${taken}`)
    await new Promise((resolve) => squatter.close(resolve))
    await becomes('200 ready')
    expect((await send(taken)).status).toBe(200)
  })
})

describe('shutting down', () => {
  it('ignores SIGHUP; SIGTERM finishes requests in flight and exits with 0', async () => {
    const port = await freePort()
    const held = Promise.withResolvers<void>()
    const slow = await startUpstream('slow', (_, response) => {
      held.resolve()
      setTimeout(() => response.end('done'), 400)
    })
    disposables.push(slow.close)
    const gw = await start({
      'base.yaml': manifest(gateway(port), staticBackend('slow', slow.port)),
      'route.yaml': routeTo('slow'),
    })
    const answer = send(port)
    await held.promise
    // Scripts send it to have files read again.
    for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const) {
      gw.signal(signal)
      await waitFor('the line', () => gw.stderr.includes(`${signal} is ignored`))
    }
    expect(gw.stderr).not.toContain('Debugger')
    const ended = gw.stop()
    expect(await answer).toMatchObject({ status: 200, body: 'done' })
    expect(await ended).toBe(0)
  })

  it('writes an access log line for every request to standard output', async () => {
    const port = await freePort()
    const gw = await start({ 'base.yaml': base(port), 'route.yaml': routeTo('a') })
    await send(port, { path: '/logged?x=1' })
    await gw.stop()
    expect(gw.stdout.trim().split('\n')).toHaveLength(1)
    expect(gw.stdout).toMatch(/http\.method=GET .*http\.path=\/logged\?x=1 .*http\.status=200/)
  })
})
