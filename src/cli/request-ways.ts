/**
 * Finds the rule that would match a request and the policies that would apply to it, with the proxy's
 * own routing tables and without sending anything. Expressions are not evaluated: policies that depend
 * on more than the route are listed, not decided.
 */
import { NO_LISTENER } from '../core/abi.ts'
import type { HeadRecord } from '../core/head-record.ts'
import type { IoCore } from '../core/io-core.ts'
import { targetKinds, targetObject } from '../model/inference-pools.ts'
import type { ObjectRef } from '../model/names.ts'
import type {
  ListenerResource,
  PolicyPhase,
  PolicyResource,
  PolicySection,
  VersionedResource,
} from '../model/resources.ts'
import {
  backendLevels,
  byAge,
  concerns,
  gatewayLevels,
  type Levels,
  listenerLevels,
  mergePolicies,
  ruleLevels,
  type TargetKey,
  targetKey,
} from '../policies/merge.ts'
import { policyRegistry } from '../policies/registry.ts'
import type { RulePlacement } from '../proxy/config/placement.ts'
import type { CompiledBackend } from '../proxy/config/rules.ts'
import { ConfigStore } from '../proxy/config/store.ts'
import { portPart } from '../proxy/upstream/services.ts'

/** A request as far as routes can see it. */
export interface AskedRequest {
  readonly method: string
  /** Host, with a port or without. */
  readonly host: string
  /** Path without the query. */
  readonly path: string
  readonly query: string | undefined
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** Port of the listener; every port is asked where absent. */
  readonly port: number | undefined
}

/** One policy at one place, and why it holds or does not. */
export interface ExplainedPolicy {
  readonly policy: ObjectRef
  /** Where the policy is attached: `Gateway default/edge#http`. */
  readonly attachedTo: string
  readonly state: 'in force' | 'overridden'
  /** Why everything that it covers is answered 500; absent where it can be enforced. */
  readonly unenforceable?: string
  /** The compiled form. */
  readonly config: unknown
}

/** What holds for one field; least specific first where several are combined. */
export interface ExplainedField {
  readonly section: PolicySection
  readonly field: string
  readonly phase: PolicyPhase
  readonly policies: readonly ExplainedPolicy[]
}

interface ExplainedBackend {
  /** `Kind namespace/name[:port]`, or why there is none. */
  readonly backend: string
  readonly weight: number
  readonly fields: readonly ExplainedField[]
}

/** The way of the request on one port. */
export interface ExplainedWay {
  readonly port: number
  readonly listener: { readonly owner: ObjectRef; readonly name: string; readonly hostname: string }
  /** Absent where no rule matches: the answer is 404. */
  readonly rule?: {
    readonly route: ObjectRef
    /** From 0. */
    readonly index: number
    readonly name?: string
    /** Why every request that matches is answered 500. */
    readonly unusable?: string
  }
  readonly fields: readonly ExplainedField[]
  readonly backends: readonly ExplainedBackend[]
}

const refuse = (): never => {
  throw new Error('nothing runs to explain')
}
const noServices = { callouts: { http: refuse, grpc: refuse, stream: refuse }, bucket: refuse }

function placeText({ kind, namespace, name, section, inline }: PolicyResource['target']): string {
  const part = section === undefined ? '' : `#${section}`
  return `${kind} ${namespace}/${name}${part}${inline === true ? ' (inline)' : ''}`
}

/** Policies by what they target. */
class PolicyBook {
  readonly #byTarget = new Map<TargetKey, PolicyResource[]>()

  constructor(resources: readonly VersionedResource[]) {
    for (const { resource } of resources) {
      if (resource.type !== 'policy') continue
      const key = targetKey(resource.target)
      this.#byTarget.set(key, [...(this.#byTarget.get(key) ?? []), resource])
    }
  }

  readonly at = (target: TargetKey): readonly PolicyResource[] => this.#byTarget.get(target) ?? []

  /** Every field that is set somewhere on the way, with winners and losers. */
  fields(section: PolicySection, phase: PolicyPhase, levels: Levels): ExplainedField[] {
    const definitions = policyRegistry.filter((definition) => definition.section === section)
    return mergePolicies(definitions, phase, levels, this.at).map(({ definition, policies }) => {
      const all = levels.flatMap((targets) =>
        targets
          .flatMap(this.at)
          .filter((policy) => concerns(definition, phase, policy))
          .sort(byAge),
      )
      const explained = all.map((policy) => explainPolicy(policy, policies.includes(policy)))
      return { section, field: definition.field, phase, policies: explained }
    })
  }
}

function explainPolicy(resource: PolicyResource, holds: boolean): ExplainedPolicy {
  const { policy, target, unenforceable, config } = resource
  const kind = target.inline === true ? target.kind : 'GatewayPolicy'
  return {
    policy: { kind, ...policy },
    attachedTo: placeText(target),
    state: holds ? 'in force' : 'overridden',
    ...(unenforceable !== undefined && { unenforceable }),
    config: JSON.parse(config) as unknown,
  }
}

function backendText({ target }: CompiledBackend): string {
  if (target.type === 'invalid') return `invalid: ${target.reason}`
  const port = target.type === 'service' ? `:${target.port}` : ''
  return `${targetKinds[target.type]} ${target.namespace}/${target.name}${port}`
}

function explainBackend(
  { rule, listener }: RulePlacement,
  backend: CompiledBackend,
  { book, store }: Scene,
): ExplainedBackend {
  const above = ruleLevels(listener.levels, rule.resource)
  const { target, weight } = backend
  const text = backendText(backend)
  if (target.type === 'invalid') return { backend: text, weight, fields: [] }
  const { namespace, name } = target
  const ref = targetObject(target)
  const ports = store.services.find(`${namespace}/${name}`)?.ports ?? []
  const sections = target.type === 'service' ? portPart(ports, target.port).sections : []
  const levels = backendLevels(above, { backend: ref, sections })
  return { backend: text, weight, fields: book.fields('backend', 'PostRouting', levels) }
}

/** Ports with a listener for HTTP, ascending, each with the scheme that it serves. */
function portsOf(resources: readonly VersionedResource[]): (readonly [number, 'http' | 'https'])[] {
  const listeners = resources.flatMap(({ resource }) =>
    resource.type === 'listener' && isHttp(resource) ? [resource] : [],
  )
  const found = new Map(
    listeners.map(({ port, protocol }) => {
      const scheme = protocol === 'HTTPS' ? ('https' as const) : ('http' as const)
      return [`${port}/${scheme}`, [port, scheme] as const]
    }),
  )
  return [...found.values()].sort(([a], [b]) => a - b)
}

const isHttp = ({ protocol }: ListenerResource) => protocol === 'HTTP' || protocol === 'HTTPS'

/** What is known of one desired state while a request is explained. */
interface Scene {
  readonly store: ConfigStore
  readonly head: HeadRecord
  readonly book: PolicyBook
}

function wayOn(scene: Scene, port: number, scheme: 'http' | 'https'): ExplainedWay | undefined {
  const { store, head, book } = scene
  const table = store.port(port, scheme)
  if (table === undefined) return undefined
  const id = table.routes.match(head)
  const listener = id === NO_LISTENER ? undefined : table.listener(head.scope)
  if (listener === undefined) return undefined
  const { owner, section: name, hostname } = listener.resource
  const fields = [
    ...book.fields('frontend', 'PostRouting', gatewayLevels(listener.levels.gateway)),
    ...book.fields('traffic', 'PreRouting', listenerLevels(listener.levels)),
  ]
  const way = { port, listener: { owner, name, hostname } }
  const placement = id < 0 ? undefined : table.entry(id)?.placement
  if (placement === undefined) return { ...way, fields, backends: [] }
  const { resource, unusable, backends } = placement.rule
  const levels = ruleLevels(listener.levels, resource)
  const rule = {
    route: resource.route,
    index: resource.ruleIndex,
    ...(resource.ruleName !== undefined && { name: resource.ruleName }),
    ...(unusable !== undefined && { unusable }),
  }
  return {
    ...way,
    rule,
    fields: [...fields, ...book.fields('traffic', 'PostRouting', levels)],
    backends: backends.map((backend) => explainBackend(placement, backend, scene)),
  }
}

/**
 * The ways of a request through a desired state, one for each port where a listener takes its host;
 * empty where none does. `core` is scratch: its memory is used for the tables.
 */
export function requestWays(
  resources: readonly VersionedResource[],
  { method, host, path, query, headers, port: asked }: AskedRequest,
  core: IoCore,
): ExplainedWay[] {
  const store = new ConfigStore(core, new Map(), noServices)
  store.apply({ sequence: 1, upserted: resources, removed: [] })
  const head = core.createHead({ maxFields: 4096, textBytes: 256 * 1024 })
  head.assign({ method, authority: host, path, query, headers })
  const scene = { store, head, book: new PolicyBook(resources) }
  return portsOf(resources)
    .filter(([port]) => asked === undefined || asked === port)
    .flatMap(([port, scheme]) => wayOn(scene, port, scheme) ?? [])
}
