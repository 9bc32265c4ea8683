import { describe, expect, it } from 'vitest'
import { createEvent, resourceApplied } from '../../../events/index.ts'
import { waitFor } from '../../../test/support/wait-for.ts'
import { Fold, foldVersion } from '../actors/fold.ts'
import { createGraph } from '../desired/derivations.ts'
import { type EventLog, MemoryLog, type Position } from '../log/index.ts'
import { regexProblem } from './api-binding.ts'
import { Reconciler } from './reconciler.ts'
import { captureState, restoreState } from './stored-state.ts'

const source = '/sluice/files'

/** A Gateway, and a backend that changes with every number. */
function observed(n: number) {
  const isGateway = n === 0
  const kind = isGateway ? 'Gateway' : 'GatewayBackend'
  const spec = isGateway
    ? {
        gatewayClassName: 'agentgateway',
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
      }
    : { static: { host: `h${n}`, port: 80 } }
  const name = isGateway ? 'edge' : `b${n % 7}`
  const object = { apiVersion: 'v1', kind, metadata: {}, spec }
  const ref = { kind, namespace: 'ns', name }
  const data = { ...ref, uid: name, resourceVersion: `${n}`, generation: n + 1, object }
  const time = new Date(Date.UTC(2026, 0, 1, 0, 0, n)).toISOString()
  return createEvent(
    resourceApplied,
    { source, time, epoch: 0 },
    {
      id: `${n}`,
      subject: `s.${name}`,
      data,
    },
  )
}

async function runOn(log: EventLog, snapshotEvery: number): Promise<Fold> {
  const { fold, index, from } = await restoreState(log, source)
  const reconciler = new Reconciler({
    log,
    fold,
    clock: { now: () => 0 },
    epoch: () => 0,
    append: (events) => log.append(events),
    observe: (event) => index.apply(event),
    capture: () => captureState(fold, index),
    snapshotEvery,
    publish: () => undefined,
    onFault: (error) => {
      throw error
    },
  })
  await reconciler.start(from)
  reconciler.open()
  for (let n = 0; n < 100; n++) {
    await log.append([observed(n)])
    await reconciler.folded(await log.lastPosition())
  }
  await waitFor('a snapshot', async () => (await log.loadSnapshot())?.position)
  await reconciler.stop()
  return fold
}

describe('a snapshot of a running gateway', () => {
  it('is stored after a number of events, with all decisions up to it in the log', async () => {
    const log = new MemoryLog()
    await runOn(log, 20)
    const snapshot = await log.loadSnapshot()
    expect(snapshot?.position).toBeGreaterThan(20)
    const [first] = await log.snapshots()
    expect(first?.position).toBeLessThan(await log.lastPosition())
    const published: number[] = []
    for await (const { event } of log.read()) {
      if (event.type === 'dev.sluice.desired.published.v1') published.push(event.data.version)
    }
    const latest = published.filter((version) => version <= (snapshot?.position ?? 0)).at(-1)
    expect(latest).toBeDefined()
  })

  it('restores, together with the events after it, the same state as the whole log', async () => {
    const log = new MemoryLog()
    await runOn(log, 30)
    const whole = new Fold(createGraph({ checkRegex: regexProblem }))
    for await (const recorded of log.read()) whole.apply(recorded)

    const restored = await restoreState(log, source)
    expect(restored.from).toBeGreaterThan(30)
    for await (const recorded of log.read({ from: restored.from })) {
      restored.fold.apply(recorded)
      restored.index.apply(recorded.event)
    }
    expect(restored.fold.digests()).toEqual(whole.digests())
    expect(restored.fold.statuses()).toEqual(whole.statuses())
    expect([...restored.index.entries()]).toHaveLength(8)
    expect(restored.index.incarnations).toBe(8)
  })

  it('is ignored if it has another fold version, in favor of an earlier one', async () => {
    const log = new MemoryLog()
    await runOn(log, 30)
    const stored = await log.snapshots()
    const [oldest] = stored
    expect(stored.length).toBeGreaterThan(1)
    for (const { position } of stored.toReversed()) {
      const atPosition = await restoreState(log, source)
      expect(atPosition.from).toBe(position + 1)
      await log.saveSnapshot({ position, foldVersion: 'another', chunks: [] })
    }
    expect(oldest?.position).toBeGreaterThan(1)
    expect((await restoreState(log, source)).from).toBe(1 as Position)
  })

  it('is ignored if it is damaged, in favor of an earlier one', async () => {
    const log = new MemoryLog()
    await runOn(log, 30)
    const [earlier, newest] = (await log.snapshots()).slice(-2)
    if (earlier === undefined || newest === undefined) throw new Error('too few snapshots')
    const chunks = [Buffer.from('{"fold":')]
    await log.saveSnapshot({ position: newest.position, foldVersion, chunks })
    expect((await restoreState(log, source)).from).toBe(earlier.position + 1)
  })
})
