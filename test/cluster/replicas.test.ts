import { afterAll, beforeAll, expect, it } from 'vitest'
import type { SluiceEvent } from '../../events/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { apiServerParts, startApiServer } from '../support/api-server.ts'
import { gateway, route, service, TestCluster } from '../support/cluster.ts'
import { ControllerProcess } from '../support/controller.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const parts = [...apiServerParts, 'gateway-api-crds', 'nats-server'] as const
const names = ['a', 'b', 'c'] as const

describeWithParts(parts, 'three replicas of a controller', () => {
  let cluster: TestCluster
  let nats: NatsServer
  let replicas: ControllerProcess[] = []

  const launch = (name: string) =>
    new ControllerProcess({ kubeconfig: cluster.server.kubeconfig, nats: nats.url, name }).start()
  const holder = async () => {
    for (const one of replicas) {
      if (one.isRunning && (await one.metric('sluice_lease_held')) === 1) return one
    }
    return undefined
  }
  const theHolder = () => waitFor('a holder of the lease', holder)

  beforeAll(async () => {
    nats = await startNatsServer()
    cluster = await new TestCluster(await startApiServer()).install()
    await cluster.apply(service('shop'))
    await cluster.apply(gateway('edge'))
    replicas = await Promise.all(names.map(launch))
  }, 150_000)

  afterAll(async () => {
    await Promise.all(replicas.map((one) => one.dispose()))
    await nats?.remove()
    await cluster?.server.stop()
  })

  /** Every replica has the same state at the same position. */
  const inStep = () =>
    waitFor('equal digests of all replicas', async () => {
      const texts = await Promise.all(
        replicas.map(async (one) => (await one.get('metrics', '/metrics')).text),
      )
      const states = texts.map((text) => /sluice_state_digest\{([^}]*)\}/.exec(text)?.[1])
      return states[0] !== undefined && states.every((state) => state === states[0])
    })

  it('[design.replicas] fold one log to one state, and one of them writes', async () => {
    const held = await Promise.all(replicas.map((one) => one.metric('sluice_lease_held')))
    await theHolder()
    expect(held.reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(1)
    await cluster.apply(route('one', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'one', 'Accepted=True')
    await inStep()
  })

  it('[design.replicas] take over if the lease holder is killed during many changes', async () => {
    const first = await theHolder()
    const routes = Array.from({ length: 200 }, (_, n) => route(`many-${n}`, 'edge', 'shop'))
    const applied = (async () => {
      for (const one of routes) await cluster.apply(one)
    })()
    await cluster.condition('HTTPRoute', 'many-20', 'Accepted=True')
    await first.kill()
    await applied
    for (const { metadata } of routes) {
      await cluster.condition('HTTPRoute', metadata.name, 'Accepted=True')
    }
    replicas[replicas.indexOf(first)] = await launch('d')
    await inStep()
    const counted = await waitFor('all routes to be counted', async () => {
      const { listeners } = (await cluster.status('Gateway', 'edge')) as {
        listeners: { attachedRoutes: number }[]
      }
      return listeners[0]?.attachedRoutes === 201 && listeners
    })
    expect(counted).toHaveLength(1)
  }, 90_000)

  it('compare their digests, and report a difference', async () => {
    const equal = async () => {
      const checks = replicas.map((one) => one.metric('sluice_digest_checks_total', 'equal'))
      return (await Promise.all(checks)).every((count) => count > 0)
    }
    await waitFor('equal digests at checkpoints', equal)
    for (const one of replicas) {
      expect(await one.metric('sluice_digest_checks_total', 'different')).toBe(0)
    }
    const log = await openNatsLog({ servers: nats.url })
    const taken: SluiceEvent[] = []
    for await (const { event } of log.read()) {
      if (event.type === 'dev.sluice.digest.taken.v1') taken.push(event)
    }
    const last = taken.at(-1)
    if (last?.type !== 'dev.sluice.digest.taken.v1') throw new Error('no digest was taken')
    const forged = { ...last.data, replica: 'other', desired: '0000000000000000' }
    await log.append([{ ...last, id: 'forged', data: forged }])
    await Promise.all(
      replicas.map((one) => one.said(/this replica and other derived different states/)),
    )
    for (const one of replicas) {
      expect(await one.metric('sluice_digest_checks_total', 'different')).toBe(1)
    }
    await log.close()
  })

  it('ignore events that a holder appends after it was suspended for longer than its lease', async () => {
    const stopped = await theHolder()
    stopped.signal('SIGSTOP')
    const others = replicas.filter((one) => one !== stopped)
    await waitFor('another holder', async () => {
      const held = await Promise.all(others.map((one) => one.metric('sluice_lease_held')))
      return held.includes(1)
    })
    await cluster.apply(route('while', 'edge', 'shop'))
    await cluster.condition('HTTPRoute', 'while', 'Accepted=True')
    await cluster.apply(route('while', 'edge', 'missing'))
    await cluster.condition('HTTPRoute', 'while', 'ResolvedRefs=False')
    stopped.signal('SIGCONT')
    await stopped.said(/no longer holding the lease/)
    await inStep()
    await cluster.condition('HTTPRoute', 'while', 'ResolvedRefs=False')
    expect(await stopped.metric('sluice_lease_held')).toBe(0)
  }, 120_000)
})
