import { describe, expect, it } from 'vitest'
import {
  type ChangePassedData,
  changeApproved,
  changeHeld,
  changePassed,
  changeRejected,
  createEvent,
  type EventDefinition,
  pinLifted,
  pinSet,
  protectionSet,
  relistFinished,
  type SluiceEvent,
} from '../../../events/index.ts'
import { FoldStory, type StoryObject } from '../../../test/support/fold-story.ts'
import { Fold } from './fold.ts'
import { judgedVersion } from './judged-versions.ts'

const gateway: StoryObject = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'agentgateway',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  },
}

const gatewayClass: StoryObject = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'GatewayClass',
  metadata: { name: 'agentgateway' },
  spec: { controllerName: 'sluice.dev/gateway-controller' },
}

const route = (hostname: string, name = 'app', annotations = {}): StoryObject => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name, ...{ annotations } },
  spec: { parentRefs: [{ name: 'edge' }], hostnames: [hostname], rules: [{ name: 'main' }] },
})

const about = { reason: 'agreed', author: 'ops' }
const app = 'HTTPRoute/default/app'

const unmet = [{ condition: 'maxRefused', gateway: 'default/edge', message: 'too many' }]
const verdict = {
  unmet,
  groups: [],
  sample: { requests: 9, refused: 3, undecided: 0, digest: '00' },
}

function record<Type extends SluiceEvent['type'], Data>(
  story: FoldStory,
  definition: EventDefinition<Type, Data>,
  data: Data,
): number {
  const id = `${story.events.length}`
  story.record((context) => createEvent(definition, context, { id, subject: 'x', data }) as never)
  return story.fold.position
}

/** A story with a route in force, and protection by the setting. */
function protectedStory(): FoldStory {
  const story = new FoldStory().apply(gatewayClass, gateway, route('one.example'))
  record(story, relistFinished, { count: 3, digest: '00' } as never)
  record(story, protectionSet, { mode: 'Hold' })
  return story
}

const hosts = ({ fold }: FoldStory) =>
  fold
    .resources()
    .flatMap(({ resource }) => (resource.type === 'route' ? resource.attachments : []))
    .flatMap(({ hostnames }) => hostnames)

const waiting = ({ fold }: FoldStory) =>
  Array.from(fold.changes.waiting.values(), ({ newest }) => judgedVersion(newest))

const pass = (story: FoldStory, changes: ChangePassedData['changes'] = [waiting(story)]) =>
  record(story, changePassed, { changes })

const hold = (story: FoldStory, objects = waiting(story)) =>
  record(story, changeHeld, { objects, ...verdict })

const heldText = (story: FoldStory): string | undefined => {
  const { parents = [] } = (story.status('HTTPRoute', 'app') ?? {}) as {
    parents?: { conditions: { type: string; message: string }[] }[]
  }
  return parents[0]?.conditions.find(({ type }) => type === 'Held')?.message
}

describe('changes under protection', () => {
  it('wait until they pass, except those of kinds that are never held', () => {
    const story = protectedStory()
    story.apply(route('two.example'), route('new.example', 'late'))
    story.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: {} })
    expect(hosts(story)).toEqual(['one.example'])
    expect([...story.fold.changes.waiting.keys()]).toEqual([app, 'HTTPRoute/default/late'])
    pass(story)
    expect(hosts(story).sort()).toEqual(['new.example', 'two.example'])
    expect(story.fold.changes.waiting.size).toBe(0)
  })

  it('wait if a Secret is deleted, whose last content stays in force until the deletion passes', () => {
    const story = protectedStory()
    const secret: StoryObject = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      data: {},
    }
    story.apply(secret).delete('Secret', 's')
    const isThere = () => story.fold.graph.object('Secret/default/s') !== undefined
    expect([[...story.fold.changes.waiting.keys()], isThere()]).toEqual([
      ['Secret/default/s'],
      true,
    ])
    hold(story)
    story.apply(secret)
    expect([story.fold.changes.waiting.size, story.fold.changes.held.size]).toEqual([0, 0])
    story.delete('Secret', 's')
    pass(story)
    expect(isThere()).toBe(false)
  })

  it('are not protected before the first listing, or without a protection', () => {
    const story = new FoldStory()
    record(story, protectionSet, { mode: 'Hold' })
    story.apply(gatewayClass, gateway, route('one.example'))
    expect(hosts(story)).toEqual(['one.example'])
    record(story, relistFinished, { count: 3, digest: '00' } as never)
    record(story, protectionSet, { mode: 'Off' })
    story.apply(route('two.example'))
    expect(hosts(story)).toEqual(['two.example'])
  })

  it('are protected by GatewayParameters in force', () => {
    const parameters = (mode: string): StoryObject => ({
      apiVersion: 'sluice.dev/v1alpha1',
      kind: 'GatewayParameters',
      metadata: { name: 'safe' },
      spec: { changeProtection: { mode } },
    })
    const story = new FoldStory().apply(gatewayClass, gateway, parameters('Warn'))
    record(story, relistFinished, { count: 3, digest: '00' } as never)
    story.apply(route('one.example'), parameters('Off'))
    expect([hosts(story), story.fold.changes.waiting.size]).toEqual([[], 2])
    pass(story)
    story.apply(route('two.example'))
    expect(hosts(story)).toEqual(['two.example'])
  })

  it('do not pass if a newer version was observed, and then all of the change waits', () => {
    const story = protectedStory()
    story.apply(route('two.example'), route('new.example', 'late'))
    const judged = waiting(story)
    story.apply(route('three.example'))
    pass(story, [judged])
    hold(story, judged)
    expect([hosts(story), story.fold.changes.held.size]).toEqual([['one.example'], 0])
  })

  it('are held with a condition until they are approved', () => {
    const story = protectedStory().apply(route('two.example'))
    const position = hold(story)
    expect(hosts(story)).toEqual(['one.example'])
    expect(heldText(story)).toBe(
      `generation 2 waits in change ${position}: too many; approve it with: sluice approve ${position}`,
    )
    const copy = new Fold(story.fold.graph)
    copy.restore(JSON.parse(JSON.stringify(story.fold.snapshot())))
    expect(copy.changes.held.get(position)?.unmet).toEqual(unmet)
    record(story, changeApproved, { held: position, ...about })
    expect([hosts(story), heldText(story)]).toEqual([['two.example'], undefined])
    expect(story.fold.changes.held.size).toBe(0)
  })

  it('are judged again in a newer version, but not for another annotation', () => {
    const story = protectedStory().apply(route('two.example'))
    const position = hold(story)
    story.apply(route('two.example', 'app', { 'sluice.dev/approve': `${position}` }))
    expect(story.fold.changes.waiting.get(app)?.held).toBe(position)
    story.apply(route('three.example'))
    expect([story.fold.changes.waiting.get(app)?.held, story.fold.changes.held.size]).toEqual([
      undefined,
      0,
    ])
    record(story, changeApproved, { held: position, ...about })
    expect(hosts(story)).toEqual(['one.example'])
    story.apply(route('one.example'))
    expect([story.fold.changes.waiting.size, heldText(story)]).toEqual([0, undefined])
  })

  it('stay as they are once they are rejected', () => {
    const story = protectedStory().apply(route('two.example'))
    const position = hold(story)
    record(story, changeRejected, { held: position, ...about })
    expect(heldText(story)).toContain(`change ${position} was rejected by ops (agreed)`)
    expect(hosts(story)).toEqual(['one.example'])
  })

  it('all take effect in an emergency, also deletions', () => {
    const story = protectedStory().apply(route('new.example', 'late'))
    hold(story)
    story.delete('HTTPRoute', 'app')
    expect(hosts(story)).toEqual(['one.example'])
    record(story, changeApproved, { emergency: true, ...about })
    expect(hosts(story)).toEqual(['new.example'])
  })

  it('that pass wait for a pin, and those that are held stay held after it', () => {
    const story = protectedStory()
    record(story, pinSet, { to: 3, objects: [], ...about })
    story.apply(route('two.example'), route('new.example', 'late'))
    const [first, second] = waiting(story)
    pass(story, [[first as never]])
    hold(story, [second as never])
    expect(hosts(story)).toEqual(['one.example'])
    record(story, pinLifted, about)
    expect(hosts(story)).toEqual(['two.example'])
    expect([...story.fold.changes.waiting.keys()]).toEqual(['HTTPRoute/default/late'])
  })
})
