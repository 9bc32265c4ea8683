import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  conditionsDecided,
  configAcked,
  createEvent,
  pinLifted,
  proxyConnected,
} from '../../../events/index.ts'
import fc from '../../../test/support/fast-check.ts'
import { FoldStory, type StoryObject } from '../../../test/support/fold-story.ts'
import { randomLog } from '../../../test/support/random-log.ts'
import { canonicalJson } from '../../ground/base/canonical.ts'
import { objectKey } from '../../ground/model/names.ts'
import { createGraph } from '../desired/derivations.ts'
import type { Status } from '../desired/status-store.ts'
import { type Digests, Fold, type FoldSnapshot, type RecordedEvent } from './fold.ts'

const freshFold = () => new Fold(createGraph({ checkRegex: () => undefined }))

function foldAll(events: readonly RecordedEvent[], fold = freshFold()): Fold {
  for (const entry of events) fold.apply(entry)
  return fold
}

/** Goes on in another process, as it were: through a snapshot as text. */
function restart(fold: Fold): Fold {
  const restored = freshFold()
  restored.restore(JSON.parse(JSON.stringify(fold.snapshot())) as FoldSnapshot)
  return restored
}

const liftEvent = (position: number) =>
  createEvent(
    pinLifted,
    { source: '/test', time: '2027-01-01T00:00:00.000Z', epoch: 0 },
    { id: `${position}`, subject: 'pin', data: { reason: 'test', author: 'test' } },
  )

/** The digests of a fold, computed again from its whole state. */
function digestsOf(fold: Fold): Digests {
  const resources = fold.resources().map(({ resource }) => {
    return `${resource.key}\0${hash('sha256', canonicalJson(resource)).slice(0, 32)}`
  })
  const deployments = [...fold.deployments()].map(([key, deployment]) => {
    return `deployment/${key}\0${hash('sha256', canonicalJson(deployment)).slice(0, 32)}`
  })
  const statuses = fold
    .statuses()
    .map(([ref, status]) => `${objectKey(ref)}\0${canonicalJson(status)}`)
  return { desired: sumOf([...resources, ...deployments]), status: sumOf(statuses) }
}

function sumOf(entries: readonly string[]): string {
  const parts = entries.map((entry) => BigInt(`0x${hash('sha256', entry).slice(0, 16)}`))
  const sum = parts.reduce((total, part) => total + part, 0n)
  return BigInt.asUintN(64, sum).toString(16).padStart(16, '0')
}

const gateway = (extra: object = {}): StoryObject => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'agentgateway',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
    ...extra,
  },
})

const route = (spec: object = {}, labels: Readonly<Record<string, string>> = {}): StoryObject => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: 'app', labels },
  spec: { parentRefs: [{ name: 'edge' }], rules: [{}], ...spec },
})

interface Listed {
  readonly type: string
  readonly status: string
  readonly lastTransitionTime: string
}

function timeOf(status: Status | undefined, type: string): string | undefined {
  return (status?.conditions as Listed[] | undefined)?.find((entry) => entry.type === type)
    ?.lastTransitionTime
}

describe('the fold', () => {
  it('continues from a snapshot at any position as if it had folded from the start', () => {
    fc.assert(
      fc.property(randomLog, fc.array(fc.nat(60), { maxLength: 4 }), (events, stops) => {
        const whole = foldAll(events)
        let interrupted = freshFold()
        for (const entry of events) {
          if (stops.includes(entry.position)) interrupted = restart(interrupted)
          interrupted.apply(entry)
        }
        interrupted = restart(interrupted)
        expect(interrupted.statuses()).toEqual(whole.statuses())
        expect(interrupted.digests()).toEqual(whole.digests())
        expect(interrupted.snapshot().position).toBe(whole.snapshot().position)
      }),
      { numRuns: 300 },
    )
  })

  it('has the digests of its resources and statuses wherever they are read', () => {
    fc.assert(
      fc.property(randomLog, fc.array(fc.nat(60), { maxLength: 4 }), (events, stops) => {
        const fold = freshFold()
        for (const entry of events) {
          fold.apply(entry)
          if (stops.includes(entry.position)) expect(fold.digests()).toEqual(digestsOf(fold))
        }
        expect(fold.digests()).toEqual(digestsOf(fold))
      }),
      { numRuns: 100 },
    )
  })

  it('gives the same resources however the changes are batched', () => {
    fc.assert(
      fc.property(randomLog, fc.integer({ min: 1, max: 20 }), (events, batch) => {
        const fold = freshFold()
        const resources = new Map<string, string>()
        const take = () => {
          const { delta } = fold.takeChange()
          for (const key of delta.removed) resources.delete(key)
          for (const { resource, version } of delta.upserted) resources.set(resource.key, version)
        }
        events.forEach((entry, at) => {
          fold.apply(entry)
          if (at % batch === 0) take()
        })
        take()
        const now = fold
          .resources()
          .map(({ resource, version }) => [resource.key, version] as const)
        expect(resources).toEqual(new Map(now))
      }),
      { numRuns: 100 },
    )
  })

  it('has the digests of an empty fold after all objects are deleted', () => {
    fc.assert(
      fc.property(randomLog, (events) => {
        const fold = foldAll(events)
        const empty = freshFold().digests()
        let position = (events.at(-1)?.position ?? 0) + 1
        fold.apply({ position, event: liftEvent(position) })
        for (const { ref, uid } of [...fold.graph.objects()]) {
          const data = { ...ref, uid, resourceVersion: 'gone', cause: 'watch' } as const
          position++
          const time = '2027-01-01T00:00:00.000Z'
          const envelope = { specversion: '1.0', id: `${position}`, source: '/test', time } as const
          const rest = { subject: 'x', datacontenttype: 'application/json', epoch: 0 } as const
          const type = 'dev.sluice.resource.deleted.v1'
          fold.apply({ position, event: { ...envelope, ...rest, type, dataschema: '', data } })
        }
        expect(fold.digests()).toEqual(empty)
        expect(fold.resources()).toEqual([])
      }),
      { numRuns: 100 },
    )
  })

  it('has the resources of the newest objects once a pin is lifted', () => {
    fc.assert(
      fc.property(randomLog, (events) => {
        const isPin = ({ event }: RecordedEvent) => event.type.startsWith('dev.sluice.pin.')
        const position = (events.at(-1)?.position ?? 0) + 1
        const pinned = foldAll([...events, { position, event: liftEvent(position) }])
        const never = foldAll(events.filter((one) => !isPin(one)))
        expect(
          pinned
            .resources()
            .map(({ version }) => version)
            .sort(),
        ).toEqual(
          never
            .resources()
            .map(({ version }) => version)
            .sort(),
        )
        expect([...pinned.graph.objects()].map(({ refused }) => refused)).toHaveLength(
          [...never.graph.objects()].length,
        )
      }),
      { numRuns: 200 },
    )
  })

  it('ignores events that it has already folded', () => {
    const story = new FoldStory().apply(gateway(), route())
    const before = story.fold.digests()
    for (const entry of story.events) story.fold.apply(entry)
    expect(story.fold.digests()).toEqual(before)
    expect(story.fold.position).toBe(2)
  })

  it('does not read recorded condition decisions', () => {
    const story = new FoldStory().apply(gateway())
    const before = story.fold.digests()
    story.record((context) =>
      createEvent(conditionsDecided, context, {
        id: 'x',
        subject: 'x',
        data: { kind: 'Gateway', namespace: 'default', name: 'edge', generation: 9, status: {} },
      }),
    )
    expect(story.fold.digests()).toEqual(before)
    expect(story.fold.takeChange().statuses.map(({ generation }) => generation)).toEqual([1])
  })

  it('publishes no status for an object that was deleted in the same batch', () => {
    const story = new FoldStory().apply(gateway()).delete('Gateway', 'edge')
    expect(story.fold.takeChange().statuses).toEqual([])
  })
})

describe('transition times of conditions', () => {
  it('are kept while the status stays the same, even if the reason changes', () => {
    const story = new FoldStory().apply(gateway())
    const first = timeOf(story.status('Gateway', 'edge'), 'Accepted')
    story.apply(
      gateway({
        listeners: [
          { name: 'http', port: 80, protocol: 'HTTP' },
          { name: 'odd', port: 81, protocol: 'example.com/own' },
        ],
      }),
    )
    expect(JSON.stringify(story.status('Gateway', 'edge'))).toContain('ListenersNotValid')
    expect(timeOf(story.status('Gateway', 'edge'), 'Accepted')).toBe(first)
  })

  it('are the time of the event that changed the status', () => {
    const story = new FoldStory().apply(gateway())
    story.record((context) =>
      createEvent(proxyConnected, context, {
        id: 'c',
        subject: 'p',
        data: { proxy: 'p', address: '192.0.2.1' },
      }),
    )
    story.record((context) =>
      createEvent(configAcked, context, {
        id: 'a',
        subject: 'p',
        data: { proxy: 'p', sequence: 1 },
      }),
    )
    expect(timeOf(story.status('Gateway', 'edge'), 'Programmed')).toBe(story.events[2]?.event.time)
    expect(timeOf(story.status('Gateway', 'edge'), 'Accepted')).toBe(story.events[0]?.event.time)
  })

  it('do not depend on when changes are taken', () => {
    fc.assert(
      fc.property(randomLog, (events) => {
        const taken = freshFold()
        for (const entry of events) {
          taken.apply(entry)
          taken.takeChange()
        }
        expect(taken.statuses()).toEqual(foldAll(events).statuses())
      }),
      { numRuns: 50 },
    )
  })
})
