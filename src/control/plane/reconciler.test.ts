import { describe, expect, it } from 'vitest'
import {
  createEvent,
  proxyConnected,
  type ResourceEvent,
  resourceApplied,
} from '../../../events/index.ts'
import { waitFor } from '../../../test/support/wait-for.ts'
import { Fold } from '../actors/fold.ts'
import { createGraph } from '../desired/derivations.ts'
import { beginning, MemoryLog, newEvent, type Position } from '../log/index.ts'
import { regexProblem } from './api-binding.ts'
import { Reconciler } from './reconciler.ts'

const source = '/sluice/files'

/** A backend, which gets a status. */
function observed(name: string): ResourceEvent {
  const ref = { kind: 'GatewayBackend', namespace: 'ns', name }
  const object = {
    apiVersion: 'v1',
    ...ref,
    metadata: {},
    spec: { static: { host: name, port: 80 } },
  }
  const data = { ...ref, uid: name, resourceVersion: '1', generation: 1, object }
  const time = new Date(0).toISOString()
  return createEvent(resourceApplied, { source, time, epoch: 0 }, { id: name, subject: name, data })
}

async function listed() {
  const log = new MemoryLog()
  await log.append([observed('a'), observed('b')])
  const fold = new Fold(createGraph({ checkRegex: regexProblem }))
  const published: number[] = []
  const prepared: number[] = []
  const reconciler = new Reconciler({
    log,
    fold,
    clock: { now: () => 0 },
    epoch: () => 0,
    append: (events) => log.append(events),
    observe: () => undefined,
    capture: () => {
      throw new Error('no snapshot is due')
    },
    prepare: (resources) => prepared.push(resources.length),
    publish: ({ upserted }) => published.push(upserted.length),
    onFault: (error) => {
      throw error
    },
  })
  await reconciler.start((beginning + 1) as Position)
  const types = async () => {
    const all: string[] = []
    for await (const { event } of log.read()) all.push(event.type.split('.').at(-2) ?? '')
    return all
  }
  return { log, reconciler, published, prepared, types }
}

const answer = () => {
  const about = { kind: 'Proxy', name: 'local' }
  const data = { id: 'answer', data: { proxy: 'local' } }
  return newEvent(proxyConnected, { source: '/sluice/xds', epoch: 0 }, about, data)
}

const observations = ['applied', 'applied']
const decisions = ['decided', 'decided', 'published']

describe('the reconciler', () => {
  it('prepares resources that are folded before it opens, and publishes them all', async () => {
    const { log, reconciler, published, prepared } = await listed()
    expect(prepared).toEqual([2])
    await log.append(Array.from({ length: 248 }, (_, n) => observed(`more-${n}`)))
    await reconciler.folded(250)
    expect(prepared).toEqual([2, 248])
    reconciler.open()
    await waitFor('a publication', () => published.length === 1)
    expect(published).toEqual([250])
    await reconciler.stop()
    expect(prepared).toHaveLength(2)
  })

  it('records the first decisions once a proxy has answered, before its answer', async () => {
    const { log, reconciler, published, types } = await listed()
    reconciler.open(60_000)
    await waitFor('a publication', () => published.length === 1)
    expect(published).toEqual([2])
    expect(await types()).toEqual(observations)
    reconciler.record()
    await log.append([answer()])
    expect(await types()).toEqual([...observations, ...decisions, 'connected'])
    await reconciler.stop()
  })

  it('records the first decisions after a while if no proxy answers', async () => {
    const { reconciler, types } = await listed()
    reconciler.open(20)
    await waitFor('decisions', async () => (await types()).length === 5)
    expect(await types()).toEqual([...observations, ...decisions])
    await reconciler.stop()
  })

  it('records decisions that wait for an answer when it stops', async () => {
    const { reconciler, published, types } = await listed()
    reconciler.open(60_000)
    await waitFor('a publication', () => published.length === 1)
    await reconciler.stop()
    expect(await types()).toEqual([...observations, ...decisions])
  })
})
