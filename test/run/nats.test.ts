import { afterEach, beforeEach, expect, it } from 'vitest'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { routeApplied } from '../contract/events.ts'
import { freePort, type RunningGateway, sluice, startGateway } from '../support/gateway.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const route = (host: string) =>
  manifest(httpRoute('app', { hostnames: [host], rules: [{ backendRefs: [toBackend('main')] }] }))

interface Line {
  readonly position: number
  readonly event: { readonly id: string; readonly type: string; readonly subject: string }
}

describeWithParts(['nats-server'], 'a gateway whose log is on a NATS server', () => {
  let server: NatsServer
  let upstream: Upstream
  let port: number
  let gw: RunningGateway
  beforeEach(async () => {
    server = await startNatsServer()
    upstream = await startUpstream()
    port = await freePort()
    gw = await startGateway({
      manifests: {
        'base.yaml': manifest(gateway(port), staticBackend('main', upstream.port)),
        'route.yaml': route('one.example'),
      },
      nats: server.url,
      env: { XDG_STATE_HOME: server.folder },
    })
  })
  afterEach(async () => {
    await gw.dispose()
    await upstream.close()
    await server.remove()
  })

  const answers = (host: string, status: number) =>
    gw.sendUntil(port, { headers: { host } }, (response) => response.status === status)

  const recorded = async (): Promise<Line[]> => {
    const { stdout } = await sluice('log', '--nats', server.url, '-o', 'json')
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
  }

  const applied = async () =>
    (await recorded())
      .filter(({ event }) => event.type === 'dev.sluice.resource.applied.v1')
      .map(({ event }) => event.subject)

  it('[design.log] appends its observations, restarts from them after kill -9, and replays them', async () => {
    await answers('one.example', 200)
    gw.write('route.yaml', route('two.example'))
    await answers('two.example', 200)
    await gw.condition('HTTPRoute', 'app', 'Accepted', 'True')
    const before = await applied()
    expect(before.filter((subject) => subject.endsWith('.HTTPRoute.default.app'))).toHaveLength(2)
    await gw.kill()
    await gw.start()
    await answers('two.example', 200)
    await answers('one.example', 404)
    // What was known is not observed again.
    expect(await applied()).toEqual(before)
    expect(await gw.stop()).toBe(0)
    const lines = await recorded()
    expect(lines.map(({ position }) => position)).toEqual(lines.map((_, index) => index + 1))
    const replay = await sluice('replay', '--nats', server.url, '-o', 'json')
    expect(replay.code).toBe(0)
    expect(JSON.parse(replay.stdout)).toMatchObject({ events: lines.length, different: [] })
    expect(JSON.parse(replay.stdout).published).toBeGreaterThan(1)
  })

  it('keeps its last configuration and reports it if a newer replica writes unknown events', async () => {
    await answers('one.example', 200)
    const log = await openNatsLog({ servers: server.url })
    const [position] = await log
      .append([{ ...routeApplied('later'), type: 'dev.sluice.resource.applied.v9' }])
      .then((appended) => (appended.ok ? appended.value : []))
    await log.close()
    const reason = `position ${position} of the log: event type dev.sluice.resource.applied.v9 is unknown; the log was written by a newer version`
    const told = `error: ${reason}. Serving the last configuration; upgrade this replica to resume updates.\n`
    await waitFor('the reason', () => gw.stderr.includes(told))
    gw.write('route.yaml', route('two.example'))
    const [, probe = ''] = /^readiness: (.*)$/m.exec(gw.stderr) ?? []
    expect(await (await fetch(probe)).text()).toBe(`ready, without: changes (${reason})\n`)
    expect((await gw.send(port, { headers: { host: 'one.example' } })).status).toBe(200)
    expect(gw.stderr).not.toMatch(/bug|^ +at /m)
    expect(await gw.stop()).toBe(0)
  })

  it('stops on SIGTERM while the NATS server is down', async () => {
    await server.kill()
    expect(await gw.stop()).toBe(0)
    expect(gw.stderr).toContain('the log does not answer')
  })

  it('serves while the NATS server is down, and applies edits once it is back', async () => {
    await answers('one.example', 200)
    await server.kill()
    gw.write('route.yaml', route('two.example'))
    expect((await gw.send(port, { headers: { host: 'one.example' } })).status).toBe(200)
    await server.restart()
    await answers('two.example', 200)
    const ids = (await recorded()).map(({ event }) => event.id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(gw.stderr).not.toContain('fatal')
  })
})
