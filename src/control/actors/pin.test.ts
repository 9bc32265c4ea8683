import { describe, expect, it } from 'vitest'
import {
  createEvent,
  type PinnedObject,
  type PinSetData,
  pinLifted,
  pinSet,
  timerFired,
} from '../../../events/index.ts'
import { FoldStory, type StoryObject } from '../../../test/support/fold-story.ts'

const gateway: StoryObject = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'edge' },
  spec: {
    gatewayClassName: 'agentgateway',
    listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }],
  },
}

const route = (hostname: string, name = 'app'): StoryObject => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name },
  spec: { parentRefs: [{ name: 'edge' }], hostnames: [hostname], rules: [{ name: 'main' }] },
})

const about = { reason: 'it broke', author: 'ops' }
const app = { kind: 'HTTPRoute', namespace: 'default', name: 'app' }

function setPin(
  story: FoldStory,
  objects: readonly PinnedObject[],
  more: Partial<PinSetData> = {},
) {
  const id = `${story.events.length}`
  const data = { to: 2, objects, ...about, ...more }
  story.record((context) => createEvent(pinSet, context, { id, subject: 'pin', data }))
}

function liftPin(story: FoldStory) {
  const id = `${story.events.length}`
  story.record((context) => createEvent(pinLifted, context, { id, subject: 'pin', data: about }))
}

/** The version of the route that a story has now. */
function versionNow({ fold }: FoldStory): PinnedObject {
  const state = [...fold.graph.objects()].find(({ ref }) => ref.name === app.name)
  if (state?.object === undefined) throw new Error('the route is missing')
  const { uid, resourceVersion, generation, age, object } = state
  return { ...app, version: { uid, resourceVersion, generation, age, object } }
}

/** The hosts that are served. */
const hosts = ({ fold }: FoldStory) =>
  fold
    .resources()
    .flatMap(({ resource }) => (resource.type === 'route' ? resource.attachments : []))
    .flatMap(({ hostnames }) => hostnames)
    .sort()

/** A story whose route was `one`, and is `two` now; and the version that served `one`. */
function changedStory() {
  const story = new FoldStory().apply(gateway, route('one'))
  const one = versionNow(story)
  story.apply(route('two'))
  return { story, one }
}

describe('a pin', () => {
  it('takes effect with its last event, and each new pin replaces the one before', () => {
    const { story, one } = changedStory()
    story.apply(route('other', 'other'))
    setPin(story, [one], { part: { pin: 'x', number: 1, count: 2 } })
    expect(hosts(story)).toEqual(['other', 'two'])
    const restored = new FoldStory()
    restored.fold.restore(JSON.parse(JSON.stringify(story.fold.snapshot())))
    setPin(story, [{ ...app, name: 'other' }], { part: { pin: 'x', number: 2, count: 2 } })
    expect(hosts(story)).toEqual(['one'])
    // Also if a snapshot was stored between its events.
    for (const entry of story.events) restored.fold.apply(entry)
    expect(hosts(restored)).toEqual(['one'])
    setPin(story, [one])
    expect(hosts(story)).toEqual(['one', 'other'])
    liftPin(story)
    expect(hosts(story)).toEqual(['other', 'two'])
  })

  it('counts for nothing if another pin comes between its events', () => {
    const { story, one } = changedStory()
    story.apply(route('other', 'other'))
    const other = { ...app, name: 'other' }
    setPin(story, [one], { part: { pin: 'x', number: 1, count: 2 } })
    setPin(story, [other])
    expect(hosts(story)).toEqual(['two'])
    setPin(story, [one], { part: { pin: 'x', number: 2, count: 2 } })
    expect(hosts(story)).toEqual(['two'])
  })

  it('has the last of several versions of an object', () => {
    const { story, one } = changedStory()
    setPin(story, [one, app])
    expect(hosts(story)).toEqual([])
    liftPin(story)
    expect(hosts(story)).toEqual(['two'])
  })

  it('lets go what is changed back, and holds it again if it differs', () => {
    const { story, one } = changedStory()
    setPin(story, [one])
    expect(JSON.stringify(story.status('HTTPRoute', 'app'))).toContain('"type":"Pinned"')
    story.apply(route('one'))
    expect(JSON.stringify(story.status('HTTPRoute', 'app'))).not.toContain('Pinned')
    expect([...story.fold.heldBack.keys()]).toEqual([])
    story.apply(route('three')).delete('HTTPRoute', 'app')
    expect(hosts(story)).toEqual(['one'])
    expect(JSON.stringify(story.status('HTTPRoute', 'app'))).toContain('its deletion waits')
    liftPin(story)
    expect(hosts(story)).toEqual([])
  })

  it('ends at its time, unless another one has replaced it', () => {
    const { story, one } = changedStory()
    const fire = () => {
      const [timer] = story.fold.timers().filter((one) => one.timer.startsWith('pin:'))
      if (timer === undefined) throw new Error('no timer is pending')
      return () =>
        story.record((context) =>
          createEvent(timerFired, context, {
            id: `${story.events.length}`,
            subject: 'timer',
            data: timer,
          }),
        )
    }
    setPin(story, [one], { until: '2026-01-02T00:00:00.000Z' })
    const old = fire()
    setPin(story, [one], { until: '2026-01-03T00:00:00.000Z' })
    old()
    expect([hosts(story), story.fold.pin?.until]).toEqual([['one'], '2026-01-03T00:00:00.000Z'])
    fire()()
    expect([hosts(story), story.fold.pin, story.fold.timers()]).toEqual([['two'], undefined, []])
  })

  it('holds only deletions of Secrets and ConfigMaps unless they are named', () => {
    const { story, one } = changedStory()
    setPin(story, [one])
    const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { a: '1' } }
    story.apply(map)
    expect([...story.fold.heldBack.keys()]).toEqual(['HTTPRoute/default/app'])
    story.apply({ ...map, data: { a: '3' } }).delete('ConfigMap', 'a')
    expect([...story.fold.heldBack.keys()]).toEqual([
      'HTTPRoute/default/app',
      'ConfigMap/default/a',
    ])
    expect(story.fold.graph.object('ConfigMap/default/a')).toBeDefined()
    story.apply(map)
    expect([...story.fold.heldBack.keys()]).toEqual(['HTTPRoute/default/app'])
    const named = { kind: 'ConfigMap', namespace: 'default', name: 'a' }
    setPin(story, [], { only: [named] })
    story.apply({ ...map, data: { a: '2' } }, route('four'))
    expect([...story.fold.heldBack.keys()]).toEqual(['ConfigMap/default/a'])
    expect(hosts(story)).toEqual(['four'])
  })
})
