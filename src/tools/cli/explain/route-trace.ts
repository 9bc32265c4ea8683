/**
 * Finds the rule that would match a request and the policies that would apply to it, in the proxy's own
 * routing tables. Nothing is sent. Expressions are not evaluated, so a listed policy may have no effect.
 */
import { NO_LISTENER } from '../../../engines/core/abi.ts'
import type { HeadRecord } from '../../../engines/core/head-record.ts'
import type { IoCore } from '../../../engines/core/io-core.ts'
import {
  backendLevels,
  frontendLevels,
  type Levels,
  listenerLevels,
  ruleLevels,
} from '../../../gateway/policies/merge.ts'
import type { ListenerPlacement } from '../../../gateway/proxy/config/placement.ts'
import type { CompiledBackend } from '../../../gateway/proxy/config/rules.ts'
import { ConfigStore } from '../../../gateway/proxy/config/store.ts'
import { splitAuthority } from '../../../gateway/proxy/upstream/authority.ts'
import { portPart } from '../../../gateway/proxy/upstream/services.ts'
import { targetKinds, targetObject } from '../../../ground/model/destinations.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { RouteResource, VersionedResource } from '../../../ground/model/resources.ts'
import {
  fieldsAt,
  type ObjectOrigin,
  type OriginOf,
  type PolicyContext,
  policiesByTarget,
  type TracedField,
} from '../../../past/explain/effective-policies.ts'

/** The parts of a request that routes match. */
export interface TracedRequest {
  readonly method: string
  /** Host with an optional port. */
  readonly host: string
  /** Path without the query. */
  readonly path: string
  readonly query: string | undefined
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Port of the listener; all ports if undefined. */
  readonly port: number | undefined
}

interface TracedBackend {
  /** `Kind namespace/name[:port]`, or `invalid: ` and a reason. */
  readonly backend: string
  readonly weight: number
  readonly fields: readonly TracedField[]
}

/** What would happen to the request on one port. */
export interface RouteTrace {
  readonly port: number
  readonly listener: { readonly owner: ObjectRef; readonly name: string; readonly hostname: string }
  /** The rule that matches; not set if there is none, so that the response is a 404. */
  readonly rule?: {
    readonly route: ObjectRef
    /** Index of the rule in its route, from 0. */
    readonly index: number
    readonly name?: string
    /** The rules that delegate the request to this one, from the first. */
    readonly delegatedFrom?: RouteResource['delegatedFrom']
    /** If set, the reason why every request that matches the rule fails with 500. */
    readonly unusable?: string
    readonly origin?: ObjectOrigin
  }
  /** Set for a CONNECT with `mode: Tunnel`, which needs no rule: the listener at which the tunnel ends. */
  readonly tunnel?: {
    readonly port: number
    /** Whether a listener of the Gateway has the port; otherwise the response is a 403. */
    readonly isServed: boolean
  }
  readonly fields: readonly TracedField[]
  readonly backends: readonly TracedBackend[]
}

/** Replaces the services of policies, which a trace lists but never runs. */
const refuse = (): never => {
  throw new Error('no policy runs during a trace')
}
const noServices = { callouts: { http: refuse, grpc: refuse, stream: refuse }, bucket: refuse }

/** A desired state, as routing tables and policies, and the request to trace through it. */
interface TraceContext extends PolicyContext {
  readonly store: ConfigStore
  readonly head: HeadRecord
  /** The authority of the request if it is a CONNECT. */
  readonly tunnelTo: string | undefined
}

function traceOn(
  context: TraceContext,
  port: number,
  scheme: 'http' | 'https',
): RouteTrace | undefined {
  const { store, head, originOf } = context
  const table = store.port(port, scheme)
  if (table === undefined) return undefined
  const id = table.routes.match(head)
  const listener = id === NO_LISTENER ? undefined : table.listener(head.scope)
  if (listener === undefined) return undefined
  const { owner, section: name, hostname } = listener.resource
  const fields = [
    ...fieldsAt(context, 'frontend', 'PostRouting', frontendLevels(listener.levels)),
    ...fieldsAt(context, 'traffic', 'PreRouting', listenerLevels(listener.levels)),
  ]
  const trace = { port, listener: { owner, name, hostname } }
  const tunnel = tunnelOf(context, listener, fields)
  if (tunnel !== undefined) return { ...trace, tunnel, fields, backends: [] }
  const placement = id < 0 ? undefined : table.entry(id)?.placement
  if (placement === undefined) return { ...trace, fields, backends: [] }
  const { resource, unusable, backends } = placement.rule
  const { route, ruleIndex: index, ruleName, delegatedFrom } = resource
  const levels = ruleLevels(listener.levels, resource)
  return {
    ...trace,
    rule: { route, index, name: ruleName, delegatedFrom, unusable, origin: originOf(route) },
    fields: [...fields, ...fieldsAt(context, 'traffic', 'PostRouting', levels)],
    backends: backends.map((backend) => traceBackend(context, backend, levels)),
  }
}

function tunnelOf(
  { store, tunnelTo }: TraceContext,
  { place }: ListenerPlacement,
  fields: readonly TracedField[],
): RouteTrace['tunnel'] {
  const port = tunnelTo === undefined ? undefined : splitAuthority(tunnelTo)?.port
  const modes = fields
    .filter(({ section, field }) => section === 'frontend' && field === 'connect')
    .flatMap(({ policies }) => policies.filter(({ state }) => state === 'in force'))
    .map(({ config }) => (config as { mode?: unknown }).mode)
  if (port === undefined || !modes.includes('Tunnel')) return undefined
  return { port, isServed: store.listeners.serves(place.gateway, port) }
}

function traceBackend(
  context: TraceContext,
  { target, weight }: CompiledBackend,
  rule: Levels,
): TracedBackend {
  if (target.type === 'invalid') {
    return { backend: `invalid: ${target.reason}`, weight, fields: [] }
  }
  const { namespace, name } = target
  const isService = target.type === 'service'
  const port = isService ? `:${target.port}` : ''
  const ports = context.store.services.find(`${namespace}/${name}`)?.ports ?? []
  const sections = isService ? portPart(ports, target.port).sections : []
  const levels = backendLevels(rule, { backend: targetObject(target), sections })
  return {
    backend: `${targetKinds[target.type]} ${namespace}/${name}${port}`,
    weight,
    fields: fieldsAt(context, 'backend', 'PostRouting', levels),
  }
}

/** The ports of HTTP listeners in ascending order, each with its scheme. */
function httpPorts(
  resources: readonly VersionedResource[],
): (readonly [number, 'http' | 'https'])[] {
  const schemes = { HTTP: 'http', HTTPS: 'https' } as const
  const found = new Map<string, readonly [number, 'http' | 'https']>()
  for (const { resource } of resources) {
    if (resource.type !== 'listener') continue
    const { port, protocol } = resource
    if (protocol === 'HTTP' || protocol === 'HTTPS') {
      found.set(`${port}/${protocol}`, [port, schemes[protocol]])
    }
  }
  return [...found.values()].sort(([a], [b]) => a - b)
}

/**
 * Traces a request through a desired state, once for each port on which a listener matches its host. The
 * routing tables are built in the memory of `core`.
 */
export function traceRoutes(
  resources: readonly VersionedResource[],
  { method, host, path, query, headers, port: wanted }: TracedRequest,
  originOf: OriginOf,
  core: IoCore,
): RouteTrace[] {
  const store = new ConfigStore(core, new Map(), noServices)
  store.apply({ sequence: 1, upserted: resources, removed: [] })
  const head = core.createHead({ maxFields: 4096, textBytes: 256 * 1024 })
  head.assign({ method, authority: host, path, query, headers })
  const tunnelTo = method === 'CONNECT' ? host : undefined
  const context = { store, head, policies: policiesByTarget(resources), originOf, tunnelTo }
  return httpPorts(resources)
    .filter(([port]) => wanted === undefined || wanted === port)
    .flatMap(([port, scheme]) => traceOn(context, port, scheme) ?? [])
}
