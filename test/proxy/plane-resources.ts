/** Desired resources as the control plane would publish them, with the defaults that tests want. */

import { targetKey } from '../../src/gateway/policies/merge.ts'
import { findPolicy } from '../../src/gateway/policies/registry.ts'
import type { ServiceTarget } from '../../src/ground/model/destinations.ts'
import type { References } from '../../src/ground/model/references.ts'
import type {
  BackendResource,
  BackendTarget,
  Destination,
  ListenerResource,
  PolicyResource,
  PolicyTarget,
  Resource,
  RouteFilter,
  RouteMatch,
  RouteResource,
  ServiceResource,
  WeightedBackend,
  WorkloadResource,
} from '../../src/ground/model/resources.ts'

export const gateway = { kind: 'Gateway', namespace: 'infra', name: 'edge' }

export function listener(port: number, fields: Partial<ListenerResource> = {}): ListenerResource {
  const section = fields.section ?? 'web'
  return {
    type: 'listener',
    key: `listener/Gateway/infra/edge/${section}`,
    gateway: { namespace: 'infra', name: 'edge' },
    owner: gateway,
    section,
    port,
    protocol: 'HTTP',
    hostname: '',
    ...fields,
  }
}

/** A match with a path prefix, or with the fields given. */
export function match(prefix: string, fields: Partial<RouteMatch> = {}): RouteMatch {
  return { path: { type: 'PathPrefix', value: prefix }, headers: [], query: [], ...fields }
}

export interface RouteFields extends Partial<Omit<RouteResource, 'route' | 'backends'>> {
  readonly name?: string
  readonly hostnames?: readonly string[]
  /** Listener sections that it attaches to. */
  readonly listeners?: readonly string[]
  readonly to?: readonly (BackendTarget | WeightedBackend)[]
}

/** A rule of an HTTPRoute in namespace `shop`. */
export function route(fields: RouteFields): RouteResource {
  const { name = 'cart', hostnames = [''], listeners = ['web'], to = [], ...rest } = fields
  const ruleIndex = rest.ruleIndex ?? 0
  return {
    type: 'route',
    key: `route/HTTPRoute/shop/${name}/${ruleIndex}`,
    route: { kind: 'HTTPRoute', namespace: 'shop', name },
    ruleIndex,
    created: 0,
    order: 0,
    attachments: listeners.map((section) => ({
      listener: `listener/Gateway/infra/edge/${section}`,
      hostnames,
    })),
    matches: [match('/')],
    filters: [],
    backends: to.map((one) => ('weight' in one ? one : weighted(one, 1))),
    ...rest,
  }
}

export function weighted(
  target: BackendTarget,
  weight: number,
  filters: readonly RouteFilter[] = [],
): WeightedBackend {
  return { target, weight, filters }
}

export function toService(name: string, port = 80): ServiceTarget {
  return { type: 'service', namespace: 'shop', name, port }
}

export function toBackend(name: string): BackendTarget {
  return { type: 'backend', namespace: 'shop', name }
}

export function backend(name: string, destination: Destination): BackendResource {
  return { type: 'backend', key: `backend/shop/${name}`, namespace: 'shop', name, destination }
}

export function service(name: string, fields: Partial<ServiceResource> = {}): ServiceResource {
  return {
    type: 'service',
    key: `service/shop/${name}`,
    namespace: 'shop',
    name,
    ports: [{ name: 'http', port: 80 }],
    publishNotReady: false,
    ...fields,
  }
}

/** The EndpointSlice of a Service: one address a port of 127.0.0.1. */
export function slice(
  name: string,
  port: number,
  fields: Partial<WorkloadResource> = {},
): WorkloadResource {
  return {
    type: 'workload',
    key: `workload/shop/${name}-1`,
    namespace: 'shop',
    name: `${name}-1`,
    service: name,
    ports: [{ name: 'http', port }],
    endpoints: [{ address: '127.0.0.1', ready: true }],
    ...fields,
  }
}

/** A Service with one ready endpoint. */
export function serviceAt(name: string, port: number): Resource[] {
  return [service(name), slice(name, port)]
}

export interface PolicyFields extends Partial<Omit<PolicyResource, 'target' | 'field'>> {
  readonly name?: string
}

const nothing: References = {
  secret: () => undefined,
  secretsWith: () => [],
  configMap: () => undefined,
  backend: ({ name, port }) => toService(name, port),
  configMapsWith: () => [],
  dynamicApiKeys: () => undefined,
  keySet: () => 'nothing is fetched here',
  issuerProblem: () => undefined,
}

/** A field of a GatewayPolicy, compiled as the control plane does it. */
export function policy(
  target: PolicyTarget,
  field: string,
  spec: unknown,
  fields: PolicyFields = {},
): PolicyResource {
  const { name = 'policy', section = 'traffic', ...rest } = fields
  const definition = findPolicy(section, field)
  // What cannot be enforced has no config, whatever was written.
  const isOff = rest.unenforceable !== undefined
  const { config } = (isOff ? undefined : definition?.compile?.(spec, nothing)) ?? {}
  return {
    type: 'policy',
    key: `policy/${section}/shop/${name}/${field}/${targetKey(target)}`,
    policy: { namespace: 'shop', name },
    section,
    field,
    phase: 'PostRouting',
    target,
    created: 0,
    order: 0,
    configVersion: definition?.configVersion ?? 0,
    config: JSON.stringify(config ?? null),
    ...rest,
  }
}

export const cartRoute = { kind: 'HTTPRoute', namespace: 'shop', name: 'cart' }
