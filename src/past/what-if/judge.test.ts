import { describe, expect, it } from 'vitest'
import {
  changeApproved,
  createEvent,
  definitionsObserved,
  protectionSet,
} from '../../../events/index.ts'
import type { StoryObject } from '../../../test/support/fold-story.ts'
import {
  answering,
  csrf,
  gateway,
  group,
  judge,
  parameters,
  pathRoute,
  protectedStory,
  protecting,
  recordOf,
  redirecting,
  route,
  told,
} from '../../../test/support/judged-story.ts'
import type { RecordedDecision } from '../decisions/record.ts'

describe('a judgement', () => {
  it('holds what takes listeners and protections away, and lets everything else pass', async () => {
    const story = protectedStory({ mode: 'Hold' })
    story.delete('GatewayPolicy', 'guard')
    story.apply(gateway(80), route('late', 'late.example'), route('shop', 'store.example'))
    expect(told(await judge(story))).toEqual({
      passed: [],
      held: [['GatewayPolicy guard', 'Gateway edge', 'HTTPRoute late', 'HTTPRoute shop']],
      unmet: [
        'lostListeners: listeners of Gateway default/edge are lost: http-81 (HTTP, port 81)',
        'removedProtections: protections of Gateway default/edge are removed: traffic.csrf of HTTPRoute default/shop',
      ],
    })
    story.apply(gateway(80, 81))
    expect(told(await judge(story))).toMatchObject({
      passed: [['HTTPRoute late']],
      held: [['GatewayPolicy guard', 'HTTPRoute shop']],
    })
  })

  it.each([
    ['another name', route('shop2', 'shop.example')],
    ['a longer path', pathRoute('shop2', 'shop.example', '/admin')],
    ['any hostname', pathRoute('shop2', undefined, '/')],
  ])(
    'holds a route that serves requests of a removed one under %s without its protection',
    async (_, next) => {
      const story = protectedStory({ mode: 'Hold' })
      story.delete('HTTPRoute', 'shop').apply(next)
      expect(told(await judge(story)).unmet).toEqual([
        'removedProtections: protections of Gateway default/edge are removed: traffic.csrf of HTTPRoute default/shop (its requests go to HTTPRoute default/shop2 without it)',
      ])
      story.apply({ ...csrf('guard', { csrf: {} }), spec: protecting('shop2') })
      expect(told(await judge(story)).held).toEqual([])
    },
  )

  it('holds a removed route whose requests a route in force serves without its protection', async () => {
    const rest = pathRoute('rest', undefined, '/')
    const story = protectedStory({ mode: 'Hold' }, rest).delete('HTTPRoute', 'shop')
    expect(told(await judge(story)).unmet).toEqual([
      expect.stringContaining('(its requests go to HTTPRoute default/rest without it)'),
    ])
  })

  it.each([
    ['another hostname', [route('other', 'other.example')]],
    ['only requests that it has served before', [pathRoute('other', 'shop.example', '/health')]],
    ['only redirects', [redirecting('other', 'shop.example')]],
  ])('lets a protected route be removed if another one serves %s', async (_, routes) => {
    const story = protectedStory({ mode: 'Hold' }, ...routes).delete('HTTPRoute', 'shop')
    expect(told(await judge(story))).toMatchObject({ passed: [['HTTPRoute shop']], held: [] })
  })

  it('holds a backend that replaces a protected one', async () => {
    const named = (name: string): StoryObject => ({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayBackend',
      metadata: { name },
      spec: { static: { host: 'models.example', port: 443 } },
    })
    const to = (name: string): StoryObject => ({
      ...route('app', 'app.example'),
      spec: {
        parentRefs: [{ name: 'edge' }],
        rules: [{ backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name }] }],
      },
    })
    const tls: StoryObject = {
      ...csrf('tls', {}),
      spec: {
        targetRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'old' }],
        backend: { tls: {} },
      },
    }
    const story = protectedStory({ mode: 'Hold' }, named('old'), to('old'), tls)
    story.delete('GatewayBackend', 'old').apply(named('new'), to('new'))
    expect(told(await judge(story)).unmet).toEqual([
      'removedProtections: protections of Gateway default/edge are removed: backend.tls of GatewayBackend default/old (its requests go to HTTPRoute default/app without it)',
    ])
  })

  it('holds a rule that admits recorded requests which authorization refuses now', async () => {
    const rules = (expression: string): StoryObject =>
      csrf('rules', { authorization: { policy: { matchExpressions: [expression] } } })
    const record = recordOf('default/edge', 'shop.example')
    const story = protectedStory({ mode: 'Hold' }, rules('false'), answering('shop'))
    story.apply(rules('true'))
    expect(told(await judge(story, [record]))).toMatchObject({
      held: [['GatewayPolicy rules']],
      unmet: [
        'maxAdmitted: 1 of 1 recorded requests to Gateway default/edge (100%) that traffic.authorization refuses would be admitted; at most 0% may',
      ],
    })
    const allowing = protectedStory(
      { mode: 'Hold', maxAdmitted: '100%' },
      rules('false'),
      answering('shop'),
    )
    allowing.apply(rules('true'))
    expect(told(await judge(allowing, [record])).held).toEqual([])
  })

  it('takes a policy with the same field and target for the one that it replaces', async () => {
    const story = protectedStory({ mode: 'Hold' })
    story.delete('GatewayPolicy', 'guard').apply(csrf('other', { csrf: {} }))
    expect(told(await judge(story)).held).toEqual([])
  })

  it('lets changes pass in mode Warn, with the conditions that are not met', async () => {
    const story = protectedStory({ mode: 'Warn', removedProtections: 'Allow' })
    story.delete('GatewayPolicy', 'guard').apply(gateway(81))
    expect(told(await judge(story))).toMatchObject({
      held: [],
      unmet: ['lostListeners: listeners of Gateway default/edge are lost: http-80 (HTTP, port 80)'],
    })
  })

  it('holds a change that makes the protection weaker', async () => {
    const story = protectedStory({ mode: 'Hold' }).apply(parameters({ mode: 'Off' }))
    expect(told(await judge(story))).toMatchObject({
      held: [['GatewayParameters safe']],
      unmet: [
        'removedProtections: protections of Gateway default/edge are removed: changeProtection (mode Hold becomes Off)',
      ],
    })
  })

  it.each([
    [{ maxRefused: '100%' }, 'maxRefused 0.1% becomes 100%'],
    [{ maxAdmitted: '1%' }, 'maxAdmitted 0% becomes 1%'],
    [{ maxUndecided: '6%' }, 'maxUndecided 5% becomes 6%'],
    [{ maxCostIncrease: '11%' }, 'maxCostIncrease 10% becomes 11%'],
    [{ maxCostIncrease: undefined }, 'maxCostIncrease 10% becomes unset'],
    [{ lostListeners: 'Allow' }, 'lostListeners Refuse becomes Allow'],
    [{ removedProtections: 'Allow' }, 'removedProtections Refuse becomes Allow'],
  ])('holds weaker conditions of the same mode: %j', async (weaker, what) => {
    const set = { mode: 'Hold', maxCostIncrease: '10%' }
    const story = protectedStory(set).apply(parameters({ ...set, ...weaker }))
    const { held, unmet } = told(await judge(story))
    expect(held).toEqual([['GatewayParameters safe']])
    expect(unmet).toEqual([
      `removedProtections: protections of Gateway default/edge are removed: changeProtection (${what})`,
    ])
    story.apply(parameters({ ...set, maxRefused: '0%' }))
    expect(told(await judge(story)).held).toEqual([])
  })

  it('holds changes that would be delivered in steps', async () => {
    const story = protectedStory({ mode: 'Hold' })
    const steps = { steps: [{ proxies: 1 }] }
    story.apply(parameters({ mode: 'Hold' }, steps))
    story.record((context) =>
      createEvent(changeApproved, context, {
        id: 'steps',
        subject: 'x',
        data: { emergency: true, reason: '', author: '' },
      }),
    )
    story.apply(gateway(80))
    expect(told(await judge(story)).held).toEqual([['Gateway edge']])
  })

  it('simulates requests in a cluster at their own Gateway, also if another has the same port', async () => {
    const second = { ...gateway(80), metadata: { name: 'second' } }
    const ofSecond = (name: string, traffic: object) => ({
      ...csrf(name, traffic),
      spec: { targetRefs: [{ group, kind: 'HTTPRoute', name: 'second' }], traffic },
    })
    const route2 = {
      ...route('second', 'second.example'),
      spec: { parentRefs: [{ name: 'second' }], rules: [{}] },
    }
    const answer = ofSecond('answer', { directResponse: { status: 200 } })
    const story = protectedStory({ mode: 'Hold' }, second, route2, answer)
    story.record((context) =>
      createEvent(definitionsObserved, context, {
        id: 'definitions',
        subject: 'x',
        data: { versions: ['v1.4.0'] },
      }),
    )
    const closed = { authorization: { policy: { matchExpressions: ['false'] } } }
    story.apply(ofSecond('rules', closed))
    const { held } = await judge(story, [recordOf('default/second'), recordOf('default/edge')])
    expect(held.flatMap(({ verdict }) => verdict.unmet)).toEqual([
      {
        condition: 'maxRefused',
        gateway: 'default/second',
        message: expect.stringMatching(/^1 of 1 recorded requests to Gateway default\/second /),
      },
    ])
  })

  it('lets everything pass if no Gateway is protected', async () => {
    const story = protectedStory({ mode: 'Off' })
    story.record((context) =>
      createEvent(protectionSet, context, {
        id: 'set',
        subject: 'x',
        data: { mode: 'Hold' as const },
      }),
    )
    story.apply(gateway(80))
    expect(told(await judge(story))).toEqual({ passed: [['Gateway edge']], held: [], unmet: [] })
  })
})

/** Pseudo-random numbers, the same in each run. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff
    return Math.floor((state / 0x8000_0000) * below)
  }
}

describe('a judgement of several changes', () => {
  const limited = (name: string, requests: number): StoryObject => ({
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayPolicy',
    metadata: { name: `limit-${name}` },
    spec: {
      targetRefs: [{ group, kind: 'HTTPRoute', name }],
      traffic: { rateLimit: { local: [{ requests, unit: 'Seconds' }] } },
    },
  })
  const answered = (name: string, status: number): StoryObject => ({
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'GatewayPolicy',
    metadata: { name: `answer-${name}` },
    spec: {
      targetRefs: [{ group, kind: 'HTTPRoute', name }],
      traffic: { directResponse: { status } },
    },
  })

  it.each([1, 2, 3, 4, 5, 6])(
    'judges each change as if it were the only one (seed %i)',
    async (seed) => {
      const number = numbersFrom(seed)
      const names = Array.from({ length: 3 + number(4) }, (_, at) => `r${at}`)
      // The state of limits depends on earlier requests, so every trial must have the same requests.
      const objects = names.flatMap((name) => [
        route(name, `${name}.example`),
        answered(name, 200),
        ...(number(2) === 0 ? [limited(name, 1 + number(3))] : []),
      ])
      const changes = names.map((name) => answered(name, number(2) === 0 ? 204 : 403 + number(90)))
      const records = Array.from({ length: 200 }, (_, at): RecordedDecision => {
        const record = recordOf('default/edge')
        const host = `${names[number(names.length)]}.example`
        const time = new Date(Date.UTC(2026, 0, 31, 12, 0, 0, at * 40)).toISOString()
        return { ...record, id: `${at}`, time, request: { ...record.request, host } }
      })
      const protect = () => protectedStory({ mode: 'Hold', maxRefused: '0%' }, ...objects)
      const together = await judge(protect().apply(...changes), records)
      const isRefusing = (change: StoryObject) => JSON.stringify(change).includes('"status":4')
      expect(together.held).toHaveLength(changes.filter(isRefusing).length)
      for (const { objects: held, verdict } of together.held) {
        const change = changes.find(({ metadata }) => metadata.name === held[0]?.name)
        const passed = changes.filter(
          (one) =>
            !isRefusing(one) && changes.indexOf(one) < changes.indexOf(change as StoryObject),
        )
        const alone = await judge(protect().apply(...passed, change as StoryObject), records)
        expect(verdict.groups.length).toBeGreaterThan(0)
        expect(alone.held[0]?.verdict).toEqual(verdict)
      }
    },
  )
})
