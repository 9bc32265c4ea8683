import { describe, expect, it } from 'vitest'
import {
  changeApproved,
  createEvent,
  type EventDefinition,
  pinLifted,
  pinSet,
  relistFinished,
  rolloutEnded,
  rolloutPaused,
  rolloutResumed,
  rolloutSkipped,
  rolloutStarted,
  rolloutStepped,
  type SluiceEvent,
} from '../../../events/index.ts'
import fc from '../../../test/support/fast-check.ts'
import { FoldStory, type StoryObject } from '../../../test/support/fold-story.ts'
import { createGraph } from '../desired/derivations.ts'
import { Fold } from './fold.ts'
import { judgedVersion } from './judged-versions.ts'

const api = 'gateway.networking.k8s.io/v1'
const gatewayClass: StoryObject = {
  apiVersion: api,
  kind: 'GatewayClass',
  metadata: { name: 'agentgateway' },
  spec: { controllerName: 'sluice.dev/gateway-controller' },
}
const gateway: StoryObject = {
  apiVersion: api,
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'agentgateway',
    infrastructure: {
      parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name: 'steps' },
    },
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  },
}
const parameters: StoryObject = {
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name: 'steps' },
  spec: { rollout: { steps: [{ proxies: 1 }] } },
}
const route = (hostname: string, name = 'app'): StoryObject => ({
  apiVersion: api,
  kind: 'HTTPRoute',
  metadata: { name },
  spec: { parentRefs: [{ name: 'edge' }], hostnames: [hostname], rules: [{ name: 'main' }] },
})

const about = { reason: 'agreed', author: 'ops' }
const app = 'HTTPRoute/default/app'
const plans = [
  { gateway: 'default/edge', steps: [1, '50%'], holdSeconds: 60, analysis: ['Errors'] as const },
]

function record<Type extends SluiceEvent['type'], Data>(
  story: FoldStory,
  definition: EventDefinition<Type, Data>,
  data: Data,
): number {
  const id = `${story.events.length}`
  story.record((context) => createEvent(definition, context, { id, subject: 'x', data }) as never)
  return story.fold.position
}

/** A story with a route in force, whose changes are delivered in steps. */
function steppedStory(): FoldStory {
  const story = new FoldStory().apply(gatewayClass, parameters, gateway, route('one.example'))
  record(story, relistFinished, { count: 4, digest: '00' } as never)
  return story
}

const hosts = (fold: Fold) =>
  fold
    .resources()
    .flatMap(({ resource }) => (resource.type === 'route' ? resource.attachments : []))
    .flatMap(({ hostnames }) => hostnames)
    .sort()

const waiting = ({ fold }: FoldStory) =>
  Array.from(fold.rollouts.waiting.values(), ({ newest }) => judgedVersion(newest))

const start = (story: FoldStory) =>
  record(story, rolloutStarted, { objects: waiting(story), plans })

const step = (story: FoldStory, rollout: number, number = 1, proxies = ['p1']) =>
  record(story, rolloutStepped, { rollout, step: number, proxies })

/** What the chosen proxies get. */
function candidateOf({ fold }: FoldStory): Fold {
  const candidate = new Fold(createGraph({ checkRegex: () => undefined }))
  candidate.restore(fold.snapshot())
  candidate.rollouts.becomeCandidate()
  candidate.graph.settle()
  return candidate
}

const conditions = (story: FoldStory, name = 'app'): string[] => {
  const { parents = [] } = (story.status('HTTPRoute', name) ?? {}) as {
    parents?: { conditions: { type: string; reason: string; message: string }[] }[]
  }
  const own = ['Progressing', 'Paused', 'RolledBack', 'Pinned']
  return (parents[0]?.conditions ?? [])
    .filter(({ type }) => own.includes(type))
    .map(({ type, reason, message }) => `${type} ${reason}: ${message}`)
}

describe('changes that are delivered in steps', () => {
  it('are in force only for the candidate until the rollout is finished', () => {
    const story = steppedStory()
    story.apply(route('two.example'), route('new.example', 'late'))
    story.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: {} })
    expect(story.fold.rollouts.waiting.size).toBe(2)
    const rollout = start(story)
    step(story, rollout)
    expect(hosts(story.fold)).toEqual(['one.example'])
    expect(hosts(candidateOf(story))).toEqual(['new.example', 'two.example'])
    expect(conditions(story)).toEqual([
      `Progressing InSteps: generation 2 is delivered to 1 proxy (step 1 of 2); see: sluice rollout ${rollout}`,
    ])
    record(story, rolloutEnded, { rollout, outcome: 'Finished', reason: 'all steps passed' })
    expect(hosts(story.fold)).toEqual(['new.example', 'two.example'])
    expect(story.fold.rollouts.waiting.size).toBe(0)
    expect(conditions(story)).toEqual([])
  })

  it('stay out of force once they are rolled back, until a newer version comes or an operator finishes them', () => {
    const story = steppedStory()
    story.apply(route('two.example'))
    const rollout = start(story)
    step(story, rollout)
    const end = { rollout, outcome: 'RolledBack', reason: '9 of 10 requests failed' } as const
    record(story, rolloutEnded, end)
    expect(conditions(story)[0]).toContain('RolledBack WorseFigures: generation 2 was rolled back')
    expect(story.fold.rollouts.running).toBeUndefined()
    step(story, rollout, 2)
    expect(story.fold.rollouts.rollouts.get(rollout)?.value).toBe('rolledBack')
    // An emergency does not put changes in force that were rolled back.
    story.apply(route('late.example', 'late'))
    record(story, changeApproved, { emergency: true, ...about })
    expect(hosts(story.fold)).toEqual(['late.example', 'one.example'])
    expect(conditions(story)[0]).toContain('RolledBack WorseFigures')
    story.apply(route('three.example'))
    expect(conditions(story)).toEqual([])
    expect(story.fold.rollouts.rollouts.size).toBe(0)
    const next = start(story)
    record(story, rolloutEnded, { ...end, rollout: next, ...about })
    expect(conditions(story)[0]).toContain('RolledBack ByOperator')
    record(story, rolloutEnded, { rollout: next, outcome: 'Finished', ...about })
    expect(hosts(story.fold)).toEqual(['late.example', 'three.example'])
  })

  it('wait at the chosen proxies too, even if the rollout gives these parameters without a rollout', () => {
    const story = steppedStory().apply({ ...parameters, spec: {} })
    step(story, start(story))
    const candidate = candidateOf(story)
    story.apply(route('two.example'))
    candidate.apply(story.events.at(-1) as never)
    expect([hosts(story.fold), hosts(candidate)]).toEqual([['one.example'], ['one.example']])
  })

  it('are paused and resumed, and a step never goes back', () => {
    const story = steppedStory()
    story.apply(route('two.example'))
    const rollout = start(story)
    step(story, rollout, 2)
    step(story, rollout, 1, ['p9'])
    record(story, rolloutPaused, { rollout, reason: 'no figures' })
    expect(conditions(story)[0]).toContain('Paused NoAnswer')
    step(story, rollout, 2, ['p3'])
    expect(story.fold.rollouts.running?.value).toBe('paused')
    record(story, rolloutResumed, { rollout, ...about })
    const { value, context } = story.fold.rollouts.running ?? {}
    expect(value).toBe('progressing')
    expect(context?.steps.map(({ number, proxies }) => [number, ...proxies])).toEqual([
      [2, 'p1'],
      [2, 'p3'],
      [2, 'p3'],
    ])
    expect(context?.reason).toBeUndefined()
  })

  it('end their rollout if one of their objects changes again, and need none if it changes back', () => {
    const story = steppedStory()
    story.apply(route('two.example'), route('new.example', 'late'))
    const rollout = start(story)
    step(story, rollout)
    story.apply(route('one.example'))
    expect(story.fold.rollouts.running).toBeUndefined()
    expect([...story.fold.rollouts.waiting.keys()]).toEqual(['HTTPRoute/default/late'])
    expect(conditions(story)).toEqual([])
    record(story, rolloutSkipped, { objects: waiting(story) })
    expect(hosts(story.fold)).toEqual(['new.example', 'one.example'])
  })

  it('ignore events about versions that are no longer the newest, and a second rollout at a time', () => {
    const story = steppedStory()
    story.apply(route('two.example'))
    const objects = waiting(story)
    story.apply(route('three.example'))
    record(story, rolloutStarted, { objects, plans })
    record(story, rolloutSkipped, { objects })
    expect(story.fold.rollouts.running).toBeUndefined()
    const rollout = start(story)
    story.apply(route('new.example', 'late'))
    start(story)
    expect(story.fold.rollouts.rollouts.size).toBe(1)
    expect(story.fold.rollouts.objectsOf(rollout)).toEqual([app])
    record(story, changeApproved, { emergency: true, ...about })
    expect(hosts(story.fold)).toEqual(['new.example', 'three.example'])
  })

  it('yield to a pin, and are delivered in steps when it is lifted', () => {
    const story = steppedStory()
    story.apply(route('two.example'))
    step(story, start(story))
    record(story, pinSet, { to: 4, objects: [], ...about })
    expect(story.fold.rollouts.waiting.size).toBe(0)
    expect([...story.fold.heldBack.keys()]).toEqual([app])
    expect(hosts(story.fold)).toEqual(['one.example'])
    record(story, pinLifted, about)
    expect(hosts(story.fold)).toEqual(['one.example'])
    expect(conditions(story)).toEqual([])
    expect([...story.fold.rollouts.waiting.keys()]).toEqual([app])
  })

  it('take effect at once before the first listing, and without a rollout in GatewayParameters', () => {
    const story = new FoldStory().apply(gatewayClass, parameters, gateway, route('one.example'))
    story.apply(route('two.example'))
    expect(hosts(story.fold)).toEqual(['two.example'])
    record(story, relistFinished, { count: 4, digest: '00' } as never)
    story.apply({ ...parameters, spec: {} })
    record(story, rolloutSkipped, { objects: waiting(story) })
    story.apply(route('three.example'))
    expect(hosts(story.fold)).toEqual(['three.example'])
  })

  it('give the same state after any order of events, however the log is divided by snapshots', () => {
    const steps = fc.array(fc.tuple(fc.nat(11), fc.nat(2), fc.nat(2), fc.nat(3)), { maxLength: 30 })
    fc.assert(
      fc.property(steps, (chosen) => {
        const story = steppedStory()
        let restored = new Fold(createGraph({ checkRegex: () => undefined }))
        for (const one of story.events) restored.apply(one)
        for (const [which, name, host, snapshot] of chosen) {
          anyEvent(story, which, name, host)
          restored.apply(story.events.at(-1) as (typeof story.events)[number])
          if (snapshot > 0) continue
          const stored = JSON.parse(JSON.stringify(restored.snapshot()))
          restored = new Fold(createGraph({ checkRegex: () => undefined }))
          restored.restore(stored)
        }
        expect(restored.digests()).toEqual(story.fold.digests())
        const json = (value: unknown) => JSON.parse(JSON.stringify(value))
        expect(json(restored.rollouts.snapshot())).toEqual(json(story.fold.rollouts.snapshot()))
      }),
      { numRuns: 60 },
    )
  })
})

/** Appends one of the events that concern rollouts. */
function anyEvent(story: FoldStory, which: number, name: number, host: number): void {
  const rollout = [...story.fold.rollouts.rollouts.keys()][name] ?? 1
  const events = [
    () => story.apply(route(`h${host}.example`, `r${name}`)),
    () => story.apply(route(`h${host}.example`, 'app')),
    () => story.delete('HTTPRoute', `r${name}`),
    () => start(story),
    () => record(story, rolloutSkipped, { objects: waiting(story).slice(0, 1) }),
    () => step(story, rollout, 1 + name),
    () => record(story, rolloutPaused, { rollout, reason: 'x' }),
    () => record(story, rolloutResumed, { rollout, ...about }),
    () => record(story, rolloutEnded, { rollout, outcome: 'Finished', reason: 'x' }),
    () => record(story, rolloutEnded, { rollout, outcome: 'RolledBack', reason: 'x' }),
    () => record(story, pinSet, { to: 4, objects: [], ...about }),
    () => record(story, pinLifted, about),
  ]
  events[which]?.()
}
