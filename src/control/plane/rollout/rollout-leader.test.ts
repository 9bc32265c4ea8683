import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createEvent, relistFinished, rolloutResumed } from '../../../../events/index.ts'
import { FoldStory, type StoryObject } from '../../../../test/support/fold-story.ts'
import { RolloutLeader } from './rollout-leader.ts'

const api = 'gateway.networking.k8s.io/v1'
const parametersRef = { group: 'sluice.dev', kind: 'GatewayParameters', name: 'steps' }
const route = (hostname: string): StoryObject => ({
  apiVersion: api,
  kind: 'HTTPRoute',
  metadata: { name: 'app' },
  spec: { parentRefs: [{ name: 'edge' }], hostnames: [hostname], rules: [{}] },
})

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A leader that delivers a change to one of these proxies first. */
async function openRollout(...names: readonly string[]) {
  const story = new FoldStory()
  story.apply(
    {
      apiVersion: api,
      kind: 'GatewayClass',
      metadata: { name: 'agentgateway' },
      spec: { controllerName: 'sluice.dev/gateway-controller' },
    },
    {
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayParameters',
      metadata: { name: 'steps' },
      spec: { rollout: { steps: [{ proxies: 1 }], hold: '600s', analysis: [] } },
    },
    {
      apiVersion: api,
      kind: 'Gateway',
      metadata: { name: 'edge' },
      spec: {
        gatewayClassName: 'agentgateway',
        infrastructure: { parametersRef },
        listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
      },
    },
    route('one.example'),
  )
  const data = { count: 4, digest: '00' } as never
  story.record((context) =>
    createEvent(relistFinished, context, { id: 'listed', subject: 'x', data }),
  )
  const proxies = new Set(names)
  const leader = new RolloutLeader({
    fold: story.fold,
    epoch: () => 1,
    append: async (events) => {
      for (const event of events) story.record(() => event)
      return story.fold.position
    },
    notify: () => undefined,
    differs: () => false,
    targets: {
      of: () =>
        Array.from(proxies, (name) => ({
          name,
          proxy: { proxy: name, state: 'ready', rejections: {} } as never,
        })),
      names: () => [...proxies],
    },
  })
  const { rollouts } = story.fold
  const chosen = () => rollouts.running?.context.steps.at(-1)?.proxies
  const advance = async (ms = 5_000) => {
    leader.update()
    await vi.advanceTimersByTimeAsync(ms)
    return rollouts.running?.value
  }
  story.apply(route('two.example'))
  await advance()
  expect(chosen()).toEqual(['p1'])
  return { story, leader, proxies, rollouts, chosen, advance }
}

it('pauses a rollout after two replacements of chosen proxies, and replaces none while it is paused', async () => {
  const { story, leader, proxies, rollouts, chosen, advance } = await openRollout(
    ...['p1', 'p2', 'p3', 'p4', 'p5', 'p6'],
  )
  /** The proxy with the change is gone. */
  const crash = () => {
    for (const name of chosen() ?? []) proxies.delete(name)
    return advance()
  }
  expect([await crash(), chosen()]).toEqual(['progressing', ['p2']])
  expect([await crash(), chosen()]).toEqual(['progressing', ['p3']])
  expect([await crash(), chosen()]).toEqual(['paused', ['p3']])
  expect(rollouts.running?.context.reason).toContain(
    'were replaced 2 times, and another one is gone',
  )
  expect([await crash(), chosen()]).toEqual(['paused', ['p3']])
  story.record((context) =>
    createEvent(rolloutResumed, context, {
      id: 'resumed',
      subject: 'x',
      data: { rollout: rollouts.running?.context.position ?? 0, reason: '', author: 'ops' },
    }),
  )
  expect([await advance(), chosen()]).toEqual(['progressing', ['p4']])
  leader.close()
})

it('pauses a rollout if only proxies with the change are left, instead of finishing it', async () => {
  const { leader, proxies, rollouts, chosen, advance } = await openRollout('p1', 'p2')
  proxies.delete('p2')
  expect(await advance(2_000)).toBe('progressing')
  proxies.add('p2')
  expect(await advance(600_000 - 10_000)).toBe('progressing')
  proxies.delete('p2')
  expect([await advance(10_000), chosen()]).toEqual(['paused', ['p1']])
  expect(rollouts.running?.context.reason).toContain('no proxy without the change is left')
  leader.close()
})
