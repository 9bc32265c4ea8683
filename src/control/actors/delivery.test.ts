import { describe, expect, it } from 'vitest'
import {
  createEvent,
  leaseAcquired,
  pinSet,
  proxyDisconnected,
  timerFired,
} from '../../../events/index.ts'
import { DeliveryStory, edgeGateway as gateway } from '../../../test/support/delivery-story.ts'
import type { StoryObject } from '../../../test/support/fold-story.ts'
import { createGraph } from '../desired/derivations.ts'
import { Fold, type FoldSnapshot } from './fold.ts'

const gatewayApi = 'gateway.networking.k8s.io/v1'

const listenerSet: StoryObject = {
  apiVersion: gatewayApi,
  kind: 'ListenerSet',
  metadata: { name: 'more' },
  spec: { parentRef: { name: 'edge' }, listeners: [{ name: 'x', port: 81, protocol: 'HTTP' }] },
}

const http = 'listener/Gateway/default/edge/http'
const yes = ['True/Programmed', 'True/Programmed']
const waiting = ['False/Pending', 'False/Pending']

describe('a snapshot of the fold', () => {
  it.each([
    ['programmed', () => new DeliveryStory().apply(gateway(), listenerSet).connect('p').ack('p')],
    [
      'rejected by a proxy that has disconnected',
      () =>
        new DeliveryStory()
          .apply(gateway(), listenerSet)
          .connect('p')
          .reject('p', http, 'taken')
          .ack('p', [http])
          .disconnect('p'),
    ],
    [
      'waiting for one of two proxies',
      () => new DeliveryStory().apply(gateway()).connect('p').connect('q'),
    ],
  ])('restores statuses and proxies of a Gateway that is %s', (_, make) => {
    const { fold } = make()
    const restored = new Fold(createGraph({ checkRegex: () => undefined }))
    restored.restore(JSON.parse(JSON.stringify(fold.snapshot())) as FoldSnapshot)
    expect(restored.statuses()).toEqual(fold.statuses())
    expect(restored.proxies()).toEqual(fold.proxies())
  })
})

describe('a fold that was restored without a Gateway', () => {
  it('names its silent proxies as before when the Gateway is created again', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').elapse()
    const restored = new Fold(createGraph({ checkRegex: () => undefined }))
    story.delete('Gateway', 'edge')
    restored.restore(JSON.parse(JSON.stringify(story.fold.snapshot())) as FoldSnapshot)
    story.apply(gateway())
    const [created] = story.events.slice(-1)
    if (created !== undefined) restored.apply(created)
    expect(restored.statuses()).toEqual(story.fold.statuses())
    expect(story.message()).toContain('do not answer: p')
  })
})

describe('a Gateway', () => {
  it('waits for a proxy that has reconnected and may serve an older generation', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').connect('q').ack('q')
    story.disconnect('q').connect('q').apply(gateway(81)).ack('p')
    expect(story.programmed()).toEqual(waiting)
    expect(story.ack('q').programmed()).toEqual(yes)
  })

  it('is not Programmed with a generation that a rollback restores until proxies have it again', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').connect('q').ack('q')
    const first = story.fold.graph.object('Gateway/default/edge')
    if (first?.object === undefined) throw new Error('the Gateway is missing')
    const { ref, uid, resourceVersion, generation, age, object } = first
    story.apply(gateway(81)).ack('p')
    story.record((context) => {
      const pinned = { ...ref, version: { uid, resourceVersion, generation, age, object } }
      const data = { to: 1, objects: [pinned], reason: 'it broke', author: 'ops' }
      return createEvent(pinSet, context, { id: 'pin', subject: 'pin', data })
    })
    expect(story.ack('q').programmed()).toEqual(waiting)
    expect(story.ack('p').programmed()).toEqual(yes)
  })

  it('is Programmed once a proxy has its generation in force, and shows the address', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p')
    expect(story.programmed()).toEqual(waiting)
    story.ack('p', [], 0)
    expect(story.programmed()).toEqual(waiting)
    story.ack('p')
    expect(story.programmed()).toEqual(yes)
    expect(story.status('Gateway', 'edge')?.addresses).toEqual([
      { type: 'IPAddress', value: '192.0.2.1' },
    ])
  })

  it('waits for every proxy that serves it, and for no other', () => {
    const story = new DeliveryStory()
      .connect('p', 'default/edge')
      .connect('pp', 'default/edge')
      .connect('other', 'default/other')
      .ack('p')
      .ack('pp')
      .ack('other')
      .apply(gateway())
      .ack('p')
    expect(story.programmed()).toEqual(waiting)
    story.ack('pp')
    expect(story.programmed()).toEqual(yes)
  })

  it('no longer waits for a proxy that has disconnected', () => {
    const story = new DeliveryStory().connect('p').connect('q').ack('p').ack('q').apply(gateway())
    story.ack('p').disconnect('q')
    expect(story.programmed()).toEqual(yes)
  })

  it('keeps a proxy that an earlier leader takes for gone', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p')
    const from = (epoch: number) => (context: { source: string; time: string }) => {
      const data = { proxy: 'p', reason: 'its replica is gone' }
      const about = { id: `gone-${epoch}`, subject: 'proxy', data }
      return createEvent(proxyDisconnected, { ...context, epoch }, about)
    }
    const data = { holder: 'replica-1', epoch: 2 }
    story.record((context) =>
      createEvent(leaseAcquired, { ...context, epoch: 2 }, { id: 'lease', subject: 'lease', data }),
    )
    expect(story.record(from(1)).fold.proxies()).toHaveLength(1)
    expect(story.record(from(2)).fold.proxies()).toHaveLength(0)
  })

  it('is no longer Programmed after a time without proxies, and reports it', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').disconnect('p')
    const [timer] = story.fold.timers()
    expect(timer?.timer).toBe('absent:default/edge')
    story.elapse()
    expect(story.programmed()).toEqual(waiting)
    expect(story.message()).toBe('no proxy is connected')
    story.connect('p').ack('p')
    expect(story.programmed()).toEqual(yes)
    expect(story.fold.timers()).toEqual([])
  })

  it('ignores a timer that was cancelled', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').disconnect('p')
    const [data] = story.fold.timers()
    if (data === undefined) throw new Error('no timer')
    story.connect('q').ack('q')
    story.record((context) =>
      createEvent(timerFired, context, { id: 'late', subject: 'timer', data }),
    )
    expect(story.programmed()).toEqual(yes)
  })

  it('names a proxy that does not answer, and waits for it again once it answers', () => {
    const story = new DeliveryStory()
      .connect('p', 'default/edge')
      .connect('q', 'default/edge')
      .ack('p')
      .ack('q')
      .apply(gateway())
      .ack('p')
    expect(story.programmed()).toEqual(waiting)
    expect(story.fold.timers().map(({ timer }) => timer)).toEqual(['silent:q'])
    story.elapse()
    expect(story.programmed()).toEqual(yes)
    expect(story.message()).toBe('not waited for, since they do not answer: q')
    story.ack('q')
    expect(story.message()).toBe('')
    story.apply(gateway(90)).ack('p')
    expect(story.programmed()).toEqual(waiting)
  })

  it('ignores the end of an older connection of a proxy', () => {
    const story = new DeliveryStory()
      .apply(gateway())
      .connect('p', 'default/edge', 'one')
      .ack('p')
      .connect('p', 'default/edge', 'two')
      .disconnect('p', 'one')
    expect(story.fold.proxies()).toMatchObject([{ proxy: 'p', stream: 'two' }])
    story.disconnect('p', 'two')
    expect(story.fold.proxies()).toEqual([])
  })

  it('names the proxy that rejects a resource, if several can serve the Gateway', () => {
    const story = new DeliveryStory()
      .apply(gateway())
      .connect('p', 'default/edge')
      .reject('p', http, 'taken')
      .ack('p', [http])
    expect(story.message()).toBe('proxy p: taken')
    story.ack('p')
    expect(story.programmed()).toEqual(yes)
  })

  it('stays Programmed and keeps its address while its proxy restarts', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').disconnect('p')
    expect(story.programmed()).toEqual(yes)
    expect(story.status('Gateway', 'edge')?.addresses).toHaveLength(1)
    story.connect('p')
    expect(story.programmed()).toEqual(yes)
  })

  it('becomes Programmed again with each generation', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').apply(gateway(90))
    expect(story.programmed()).toEqual(waiting)
    expect(story.ack('p').programmed()).toEqual(yes)
  })

  it('is not Programmed after a deletion and recreation, until a proxy acknowledges it', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p')
    story.delete('Gateway', 'edge')
    const again = new DeliveryStory()
    for (const { event } of story.events) again.record(() => event)
    const first = story.events[0]?.event
    if (first?.type !== 'dev.sluice.resource.applied.v1') throw new Error('no first event')
    again.record(() => ({ ...first, id: 'again', data: { ...first.data, uid: 'another' } }))
    expect(again.programmed()).toEqual(waiting)
  })

  it('is not Programmed after a recreation whose deletion was missed', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p')
    const first = story.events[0]?.event
    if (first?.type !== 'dev.sluice.resource.applied.v1') throw new Error('no first event')
    story.record(() => ({ ...first, id: 'again', data: { ...first.data, uid: 'another' } }))
    expect(story.programmed()).toEqual(waiting)
  })
})

describe('a Gateway after the log was replaced by an empty one', () => {
  const remembered = () => new DeliveryStory().remembered(gateway(), 1)

  it('stays Programmed while its proxies reconnect', () => {
    const story = remembered()
    const address = () => JSON.stringify(story.status('Gateway', 'edge')?.addresses)
    expect(story.programmed()).toEqual(yes)
    expect(address()).toContain('192.0.2.9')
    expect(story.connect('p', 'default/edge').programmed()).toEqual(yes)
    expect(story.ack('p').programmed()).toEqual(yes)
    expect(address()).toBe(JSON.stringify([{ type: 'IPAddress', value: '192.0.2.1' }]))
    expect(story.fold.timers()).toEqual([])
  })

  it('is no longer Programmed if no proxy reconnects', () => {
    const story = remembered()
    expect(story.fold.timers()).toMatchObject([
      { timer: 'absent:default/edge', dueAt: '2026-01-01T00:00:30.000Z' },
    ])
    expect(story.elapse().programmed()).toEqual(waiting)
    expect(story.message()).toBe('no proxy is connected')
  })

  it('is no longer Programmed if a proxy reconnects but does not answer', () => {
    const story = remembered().connect('p', 'default/edge').elapse().elapse()
    expect(story.programmed()).toEqual(waiting)
  })

  it('is no longer Programmed as soon as a proxy rejects a listener', () => {
    const story = remembered().connect('p').reject('p', http, 'taken')
    expect(story.programmed()).toEqual(['False/NoResources', 'False/PortUnavailable'])
  })

  it('is Programmed only if the remembered generation is the current one', () => {
    expect(new DeliveryStory().remembered(gateway(), 7).programmed()).toEqual(waiting)
  })

  it('is not Programmed by a remembered status that arrives later', () => {
    const story = new DeliveryStory().apply(gateway())
    const again = { ...gateway(), metadata: { name: 'edge', labels: { a: 'b' } } }
    expect(story.remembered(again, 1).programmed()).toEqual(waiting)
  })

  it('keeps its ListenerSets Programmed too', () => {
    const story = remembered().remembered(listenerSet, 1)
    expect(story.programmed('ListenerSet', 'more')).toEqual(yes)
    story.elapse()
    expect(story.programmed('ListenerSet', 'more')[0]).toBe('False/ParentNotProgrammed')
  })
})

describe('a listener that a proxy rejects', () => {
  const refused = () =>
    new DeliveryStory().apply(gateway()).connect('p').reject('p', http, 'taken').ack('p', [http])

  it('is not Programmed, and neither is its Gateway', () => {
    const story = refused()
    expect(story.programmed()).toEqual(['False/NoResources', 'False/PortUnavailable'])
    expect(JSON.stringify(story.status('Gateway', 'edge'))).toContain('taken')
  })

  it('recovers with an acknowledgement that no longer lists it', () => {
    expect(refused().ack('p').programmed()).toEqual(yes)
  })

  it('does not become Programmed if its proxy disconnects or reconnects', () => {
    const story = refused().disconnect('p')
    expect(story.programmed()).toEqual(['False/NoResources', 'False/PortUnavailable'])
    story.connect('p')
    expect(story.programmed()).toEqual(['False/NoResources', 'False/PortUnavailable'])
    expect(story.ack('p').programmed()).toEqual(yes)
  })

  it('stays rejected while any proxy rejects it', () => {
    const story = refused().connect('q').reject('q', http, 'also taken').ack('q', [http]).ack('p')
    expect(story.programmed()).toEqual(['False/NoResources', 'False/PortUnavailable'])
    expect(JSON.stringify(story.status('Gateway', 'edge'))).toContain('also taken')
    expect(story.disconnect('q').programmed()).toEqual(yes)
  })
})

describe('a Gateway whose proxy rejects a whole change set', () => {
  const whole = 'gateway/default/edge'
  const refused = () =>
    new DeliveryStory()
      .apply(gateway())
      .connect('p', 'default/edge')
      .ack('p')
      .reject('p', whole, 'unreadable')
      .ack('p', [whole])

  it('is not Programmed, and reports the proxy and its reason', () => {
    const text = JSON.stringify(refused().status('Gateway', 'edge'))
    expect(text).toContain('"reason":"Rejected"')
    expect(text).toContain('proxy p: unreadable')
  })

  it('recovers with the next acknowledgement', () => {
    expect(refused().ack('p').programmed()).toEqual(yes)
  })
})

describe('a ListenerSet', () => {
  it('becomes Programmed by an acknowledgement of its own, not by that of its Gateway', () => {
    const story = new DeliveryStory().apply(gateway()).connect('p').ack('p').apply(listenerSet)
    expect(story.programmed('ListenerSet', 'more')).toEqual(['Unknown/Pending', 'False/Pending'])
    story.ack('p')
    expect(story.programmed('ListenerSet', 'more')).toEqual(yes)
  })

  it('waits until its Gateway is Programmed', () => {
    const story = new DeliveryStory().apply(gateway(), listenerSet)
    expect(story.programmed('ListenerSet', 'more')[0]).toBe('False/ParentNotProgrammed')
  })

  it('reports the listener whose port cannot be used', () => {
    const key = 'listener/ListenerSet/default/more/x'
    const story = new DeliveryStory().apply(gateway(), listenerSet).connect('p')
    story.reject('p', key, 'taken').ack('p', [key])
    expect(story.programmed('ListenerSet', 'more')).toEqual([
      'False/PortUnavailable',
      'False/PortUnavailable',
    ])
    expect(story.programmed()).toEqual(yes)
  })
})
