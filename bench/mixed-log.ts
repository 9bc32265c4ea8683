/**
 * A log as a controller records it for many HTTPRoutes: edited routes, endpoints that change, Services whose
 * labels change, acknowledgements of three proxies, and the decisions about all of them.
 */
import {
  conditionsDecided,
  configAcked,
  createEvent,
  desiredPublished,
  type EventDefinition,
  proxyConnected,
  type SluiceEvent,
} from '../events/index.ts'
import { Fold, foldVersion, type RecordedEvent } from '../src/control/actors/fold.ts'
import { createGraph } from '../src/control/desired/derivations.ts'
import { appliedEvent, foldSurroundings, routeObject, type SceneObject } from './scenes.ts'

const proxies = ['edge-0', 'edge-1', 'edge-2']
const routesPerService = 20
/** Position of the first event, in milliseconds; one event a second. */
const begin = Date.parse('2026-01-02T03:04:05.000Z')

/** Route `n`, which sends its requests to the Service that it shares with a few others. */
function mixedRoute(n: number, revision: number): SceneObject {
  const name = `shop-${Math.floor(n / routesPerService)}`
  const text = JSON.stringify(routeObject(n, revision)).replaceAll('"shop"', `"${name}"`)
  return JSON.parse(text) as SceneObject
}

function serviceObject(n: number, revision: number): SceneObject {
  const metadata = { name: `shop-${n}`, labels: { revision: `${revision}` } }
  const ports = [{ name: 'http', port: 80, targetPort: 8080 }]
  return { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } }
}

function sliceObject(n: number, revision: number): SceneObject {
  const name = `shop-${n}`
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-a`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 8080 }],
    endpoints: [0, 1, 2, 3].map((pod) => ({
      addresses: [`10.${n % 200}.${pod}.${(revision * (pod === 0 ? 1 : 0) + pod) % 250}`],
      conditions: { ready: true },
      nodeName: `node-${pod}`,
    })),
  }
}

type Made = (revision: number) => SceneObject

/** Yields the events of a log with `size` events or a few more; the same events for the same arguments. */
export function* mixedLog(size: number, routes: number): Generator<RecordedEvent> {
  const fold = new Fold(createGraph({ checkRegex: () => undefined }))
  const revisions = new Map<string, number>()
  let position = 0
  const record = (event: SluiceEvent): RecordedEvent => {
    position++
    const time = new Date(begin + position * 1000).toISOString()
    const recorded = { position, event: { ...event, id: `${position}`, time } }
    fold.apply(recorded)
    return recorded
  }
  const written = <Type extends SluiceEvent['type'], Data>(
    definition: EventDefinition<Type, Data>,
    data: Data,
  ) => {
    const context = { source: '/sluice/bench', time: '', epoch: 0 }
    return createEvent(definition, context, { id: '', subject: '', data }) as unknown as SluiceEvent
  }
  function* batch(objects: readonly Made[]): Generator<RecordedEvent> {
    for (const make of objects) {
      const { kind, metadata } = make(0) as { kind: string; metadata: { name: string } }
      const revision = (revisions.get(kind + metadata.name) ?? 0) + 1
      revisions.set(kind + metadata.name, revision)
      yield record(appliedEvent(make(revision), revision))
    }
    const sequence = fold.position
    const { delta, statuses } = fold.takeChange()
    const { desired: digest, status: statusDigest } = fold.digests()
    for (const { ref, generation, status } of statuses) {
      yield record(written(conditionsDecided, { ...ref, generation, status }))
    }
    const { upserted, removed } = delta
    if (upserted.length + removed.length + statuses.length === 0) return
    const counts = { upserted: upserted.length, removed: removed.length }
    const state = { version: sequence, digest, statusDigest, ...counts, foldVersion }
    yield record(written(desiredPublished, state))
    for (const proxy of proxies) yield record(written(configAcked, { proxy, sequence }))
  }
  const services = Math.ceil(routes / routesPerService)
  yield* batch(foldSurroundings().map((object) => () => object))
  for (const proxy of proxies) yield record(written(proxyConnected, { proxy }))
  const all = Array.from({ length: services }, (_, n): Made[] => [
    (revision) => serviceObject(n, revision),
    (revision) => sliceObject(n, revision),
  ])
  yield* batch(all.flat())
  yield* batch(
    Array.from(
      { length: routes },
      (_, n): Made =>
        (r) =>
          mixedRoute(n, r),
    ),
  )
  for (let turn = 0; position < size; turn++) {
    const edit = (at: number): Made => {
      const n = ((turn * 20 + at) * 7919) % routes
      return (revision) => mixedRoute(n, revision)
    }
    const change = (at: number): Made => {
      const n = ((turn * 8 + at) * 7919) % services
      return (revision) => (at === 0 ? serviceObject(n, revision) : sliceObject(n, revision))
    }
    yield* batch(Array.from({ length: 10 }, (_, at) => edit(at)))
    yield* batch(Array.from({ length: 9 }, (_, at) => change(at)))
    yield* batch(Array.from({ length: 10 }, (_, at) => edit(10 + at)))
  }
}
