/** Objects and events that several benches measure with: a Gateway, a Service, and many HTTPRoutes. */
import { createEvent, messageId, resourceApplied, type SluiceEvent } from '../events/index.ts'
import { subjectOf } from '../src/control/log/index.ts'
import { builtInObjects } from '../src/control/plane/api-binding.ts'
import { gateway, httpRoute, service } from '../test/support/manifests.ts'

export type SceneObject = Readonly<Record<string, unknown>>

const routesPerHost = 10

/** A route of ordinary size (two rules, three matches, a filter); revisions differ in a header. */
export function routeObject(n: number, revision = 0): SceneObject {
  const header = { name: 'x-revision', value: `${revision}` }
  const backendRefs = [{ name: 'shop', port: 80 }]
  const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } })
  return httpRoute(`route-${n}`, {
    hostnames: [`service-${Math.floor(n / routesPerHost)}.example.com`],
    rules: [
      {
        matches: [
          prefix(`/api/v${n % 3}/resource-${n}`),
          { ...prefix(`/internal/${n}`), method: 'GET', headers: [{ name: 'x-team', value: 'a' }] },
        ],
        filters: [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [header] } }],
        backendRefs,
      },
      { matches: [prefix(`/static/${n}`)], backendRefs },
    ],
  })
}

/** What the routes attach and point to: a Gateway on the port and a Service with endpoints. */
export function surroundings(port: number, endpoints: readonly number[] = [9101]): SceneObject[] {
  return [gateway(port), ...service('shop', endpoints)]
}

/** The same and the default GatewayClass, for a fold without a file source. */
export const foldSurroundings = (): SceneObject[] => [
  ...(builtInObjects as SceneObject[]),
  ...surroundings(8080),
]

const clusterScoped = new Set(['GatewayClass', 'Namespace'])

/** The event of a source that has seen an object; revisions count from 1. */
export function appliedEvent(object: SceneObject, revision = 1): SluiceEvent {
  const { kind, metadata } = object as { kind: string; metadata: { name: string } }
  const namespace = clusterScoped.has(kind) ? '' : 'default'
  const { name } = metadata
  const uid = `${kind}-${namespace}-${name}`
  const context = { source: '/sluice/bench', time: '2026-01-02T03:04:05.000Z', epoch: 0 }
  return createEvent(resourceApplied, context, {
    id: messageId(0, uid, `${revision}`, resourceApplied.type),
    subject: subjectOf({ cluster: 'bench', kind, namespace, name }),
    data: {
      kind,
      namespace,
      name,
      uid,
      resourceVersion: `${revision}`,
      generation: revision,
      object,
    },
  })
}
