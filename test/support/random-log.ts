/**
 * Random logs for property tests: a few objects of every kind that derivations join, applied,
 * refused, deleted and created again, between proxies that come, answer and go.
 */

import {
  configAcked,
  configRejected,
  createEvent,
  type PinnedObject,
  type PinSetData,
  pinLifted,
  pinSet,
  proxyConnected,
  proxyDisconnected,
  type RefusedTarget,
  resourceApplied,
  resourceDeleted,
  resourceRefused,
  type SluiceEvent,
} from '../../events/index.ts'
import type { RecordedEvent } from '../../src/control/actors/fold.ts'
import { type ObjectRef, objectKey } from '../../src/ground/model/names.ts'
import fc from './fast-check.ts'

const group = 'gateway.networking.k8s.io'
// The first of several is chosen more often, so that references often resolve.
const name = fc.constantFrom('a', 'a', 'b')
const namespace = fc.constantFrom('one', 'one', 'one', 'two')
const hostname = fc.constantFrom('', 'x.example.com', '*.example.com')

const object = (kind: string, spec: fc.Arbitrary<object>, fields: fc.Arbitrary<object>) =>
  fc.record({ kind: fc.constant(kind), namespace, name, spec, fields })

const noFields = fc.constant({})
const listener = fc.record({
  name: fc.constantFrom('l', 'm'),
  port: fc.constantFrom(80, 81),
  protocol: fc.constantFrom('HTTP', 'HTTP', 'HTTP', 'TCP'),
  hostname,
  allowedRoutes: fc.record({ namespaces: fc.record({ from: fc.constantFrom('Same', 'All') }) }),
})
const listeners = fc.uniqueArray(listener, { selector: (entry) => entry.name, minLength: 1 })

const objects = fc.oneof(
  object(
    'Gateway',
    fc.record({
      gatewayClassName: fc.constantFrom('agentgateway', 'agentgateway', 'agentgateway', 'foreign'),
      listeners,
      allowedListeners: fc.record({
        namespaces: fc.record({ from: fc.constantFrom('None', 'All') }),
      }),
    }),
    noFields,
  ),
  object(
    'ListenerSet',
    fc.record({ parentRef: fc.record({ name, namespace }), listeners }),
    noFields,
  ),
  object(
    'HTTPRoute',
    fc.record({
      parentRefs: fc.array(
        fc.record({ kind: fc.constantFrom('Gateway', 'ListenerSet'), name, namespace }),
        { minLength: 1, maxLength: 2 },
      ),
      hostnames: fc.array(fc.constantFrom('x.example.com', '*.example.com', 'y.example.org'), {
        maxLength: 1,
      }),
      rules: fc.array(
        fc.record({
          name: fc.constantFrom('r', 's'),
          backendRefs: fc.array(
            fc.oneof(
              fc.record({ name, namespace, port: fc.constantFrom(80, 81) }),
              fc.record({
                group: fc.constant('sluice.dev'),
                kind: fc.constant('GatewayBackend'),
                name,
                namespace,
              }),
              fc.record({
                group: fc.constant(group),
                kind: fc.constant('HTTPRoute'),
                name,
                namespace,
              }),
              fc.constant({ group: 'sluice.dev', kind: 'AgentgatewayModel', name: '*' }),
            ),
            { maxLength: 2 },
          ),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    }),
    fc.record({ labels: fc.constantFrom({}, { team: 'red' }) }),
  ),
  object('Service', fc.constant({ ports: [{ port: 80 }] }), noFields),
  object('GatewayBackend', fc.constant({ static: { host: 'h', port: 1 } }), noFields),
  object(
    'ReferenceGrant',
    fc.record({
      from: fc.constant([
        { group, kind: 'HTTPRoute', namespace: 'one' },
        { group, kind: 'HTTPRoute', namespace: 'two' },
      ]),
      to: fc.constantFrom(
        [{ group: '', kind: 'Service' }],
        [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'a' }],
      ),
    }),
    noFields,
  ),
  object(
    'GatewayPolicy',
    fc.record({
      targetRefs: fc.array(
        fc.oneof(
          fc.record({
            group: fc.constant(group),
            kind: fc.constantFrom('Gateway', 'HTTPRoute', 'ListenerSet'),
            name,
          }),
          fc.record({ group: fc.constant(''), kind: fc.constant('Service'), name }),
        ),
        { maxLength: 2 },
      ),
      targetSelectors: fc.constantFrom(
        [],
        [{ group, kind: 'HTTPRoute', matchLabels: { team: 'red' } }],
      ),
      traffic: fc.constantFrom(
        { directResponse: { status: 200 } },
        { csrf: {}, retry: { attempts: 1 } },
      ),
    }),
    noFields,
  ),
)

const proxy = fc.constantFrom('p', 'p', 'q')

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ type: fc.constant('apply' as const), object: objects }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('refuse' as const), object: objects }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('delete' as const), object: objects }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('connect' as const), proxy }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('disconnect' as const), proxy }) },
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('ack' as const),
      proxy,
      back: fc.constantFrom(0, 0, 0, 5),
      refuses: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant('reject' as const), proxy, name, namespace }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('pin' as const),
      objects: fc.array(fc.record({ object: objects, isPresent: fc.boolean() }), { maxLength: 3 }),
      isOnly: fc.boolean(),
      untilChanged: fc.boolean(),
      part: fc.constantFrom(
        undefined,
        { pin: 'x', number: 1, count: 2 },
        { pin: 'x', number: 2, count: 2 },
      ),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('lift' as const) }) },
)

type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

/** The parents that a refused route or ListenerSet still names. */
function parentsOf(spec: object): RefusedTarget[] {
  const { parentRefs, parentRef } = spec as {
    parentRefs?: RefusedTarget[]
    parentRef?: Omit<RefusedTarget, 'kind'>
  }
  const own = parentRef === undefined ? [] : [{ kind: 'Gateway', ...parentRef }]
  return [...(parentRefs ?? []), ...own].map((parent) => ({ group, ...parent }))
}

/** A pin of random versions, or a part of one. */
function pinnedBy(
  { objects: made, isOnly, untilChanged, part }: Extract<Step, { type: 'pin' }>,
  position: number,
): Pick<PinSetData, 'objects' | 'only' | 'untilChanged' | 'part'> {
  const pinned = new Map<string, PinnedObject>()
  for (const { object: one, isPresent } of made) {
    const ref = { kind: one.kind, namespace: one.namespace, name: one.name }
    const version = {
      uid: 'old',
      resourceVersion: 'old',
      generation: 1,
      age: { created: 0, order: position },
      object: bodyOf(one),
    }
    pinned.set(objectKey(ref), { ...ref, ...(isPresent && { version }) })
  }
  const refs = Array.from(pinned.values(), ({ kind, namespace, name }) => ({
    kind,
    namespace,
    name,
  }))
  return {
    objects: [...pinned.values()],
    ...(isOnly && { only: refs }),
    ...(untilChanged && { untilChanged }),
    ...(part && { part }),
  }
}

const bodyOf = ({ kind, name, spec, fields }: Extract<Step, { type: 'apply' }>['object']) => ({
  apiVersion: 'v1',
  kind,
  metadata: { ...fields, name },
  spec,
})

/** Gives uids, generations and positions as a source and a log do. */
class Recording {
  readonly events: RecordedEvent[] = []
  readonly #live = new Map<string, { uid: string; generation: number }>()
  #incarnations = 0

  add(item: Step): void {
    const position = this.events.length + 1
    const time = new Date(Date.UTC(2026, 0, 1, 0, 0, position)).toISOString()
    const event = this.#event(item, position, { source: '/test', time, epoch: 0 })
    if (event !== undefined) this.events.push({ position, event })
  }

  #event(
    item: Step,
    position: number,
    context: { source: string; time: string; epoch: number },
  ): SluiceEvent | undefined {
    const id = String(position)
    const about = (subject: string) => ({ id, subject })
    switch (item.type) {
      case 'connect':
        return createEvent(proxyConnected, context, {
          ...about('proxy'),
          data: { proxy: item.proxy, address: `192.0.2.${item.proxy.length}` },
        })
      case 'disconnect':
        return createEvent(proxyDisconnected, context, {
          ...about('proxy'),
          data: { proxy: item.proxy, reason: 'test' },
        })
      case 'ack':
        return createEvent(configAcked, context, {
          ...about('proxy'),
          data: {
            proxy: item.proxy,
            sequence: Math.max(0, position - 1 - item.back),
            ...(item.refuses && { refused: ['listener/Gateway/one/a/l'] }),
          },
        })
      case 'reject': {
        const key = `listener/Gateway/${item.namespace}/${item.name}/l`
        const data = { proxy: item.proxy, sequence: position - 1, key, code: 'x', message: 'taken' }
        return createEvent(configRejected, context, { ...about('proxy'), data })
      }
      case 'pin': {
        const data = { to: 0, ...pinnedBy(item, position), reason: 'test', author: 'test' }
        return createEvent(pinSet, context, { ...about('pin'), data })
      }
      case 'lift': {
        const data = { reason: 'test', author: 'test' }
        return createEvent(pinLifted, context, { ...about('pin'), data })
      }
      default:
        return this.#resourceEvent(item, context, id)
    }
  }

  #resourceEvent(
    { type, object: made }: Extract<Step, { type: 'apply' | 'refuse' | 'delete' }>,
    context: { source: string; time: string; epoch: number },
    id: string,
  ): SluiceEvent | undefined {
    const ref: ObjectRef = { kind: made.kind, namespace: made.namespace, name: made.name }
    const key = objectKey(ref)
    const known = this.#live.get(key)
    if (type === 'delete') {
      if (known === undefined) return undefined
      this.#live.delete(key)
      const data = { ...ref, uid: known.uid, resourceVersion: id, cause: 'watch' } as const
      return createEvent(resourceDeleted, context, { id, subject: key, data })
    }
    const uid = known?.uid ?? `${key}#${++this.#incarnations}`
    const generation = (known?.generation ?? 0) + 1
    this.#live.set(key, { uid, generation })
    const version = { ...ref, uid, resourceVersion: id, generation }
    if (type === 'refuse') {
      const problems = [{ path: 'spec', message: 'wrong' }]
      const targets = parentsOf(made.spec)
      return createEvent(resourceRefused, context, {
        id,
        subject: key,
        data: { ...version, problems, targets },
      })
    }
    return createEvent(resourceApplied, context, {
      id,
      subject: key,
      data: { ...version, object: bodyOf(made) },
    })
  }
}

/** Logs of up to 60 events. */
export const randomLog: fc.Arbitrary<readonly RecordedEvent[]> = fc
  .array(step, { minLength: 1, maxLength: 60, size: 'max' })
  .map((steps) => {
    const recording = new Recording()
    for (const item of steps) recording.add(item)
    return recording.events
  })
