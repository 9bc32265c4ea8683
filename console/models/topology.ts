/**
 * The way of requests as a graph: Gateway, listeners, routes, rules, backends; behind these endpoints, providers of
 * models and MCP servers.
 */

import { targetKey } from '../../src/gateway/policies/merge.ts'
import { targetObject } from '../../src/ground/model/destinations.ts'
import type { McpTarget } from '../../src/ground/model/mcp-targets.ts'
import type { ModelProvider } from '../../src/ground/model/model-providers.ts'
import {
  type ObjectKey,
  type ObjectRef,
  objectKey,
  parseObjectKey,
} from '../../src/ground/model/names.ts'
import type { BackendTarget, Resource } from '../../src/ground/model/resources.ts'
import { policiesByTarget } from '../../src/past/explain/effective-policies.ts'
import { checkStatus, type ObjectHealth } from '../../src/past/explain/health.ts'
import type { Moment } from '../log/loaded-log.ts'
import { layOut, type TopologyEdge, type TopologyNode } from './layout.ts'
import { healthOfObject } from './objects.ts'

interface TopologyParams {
  /** Key of an object: only nodes that requests through it pass are shown. */
  readonly focus?: ObjectKey
  /** Names of series whose requests fail, such as `route shop/cart`. Their nodes are drawn first. */
  readonly broken?: readonly string[]
}

/** Maximum number of nodes that are drawn. */
const maxNodes = 200

export async function topologyModel(moment: Moment, { focus = '', broken = [] }: TopologyParams) {
  const builder = new TopologyBuilder(moment)
  const { nodes, edges } = builder.build()
  const isFocus = ({ object }: GraphNode) => object === focus
  const own = nodes.filter((node) => isFocus(node) || builder.policiesOf(node).includes(focus))
  const focused = focus === '' ? nodes : connectedTo(own, nodes, edges)
  const shown = brokenFirst(moment, focused, edges, new Set(broken)).map((node) =>
    builder.describe(node),
  )
  const ids = new Set(shown.map(({ id }) => id))
  const drawn = edges.filter(({ from, to }) => ids.has(from) && ids.has(to))
  const once = new Map(drawn.map((edge) => [`${edge.from}\0${edge.to}`, edge])).values()
  // The layout is calmer if the edges of a node come one after the other.
  const ordered = [...Map.groupBy(once, ({ from }) => from).values()].flat()
  return {
    ...(await layOut(shown, ordered)),
    total: focused.length,
    all: nodes.length,
  }
}

/** A node before it is drawn. Most are only counted, so that their texts are made when they are needed. */
interface GraphNode extends Pick<TopologyNode, 'id' | 'type' | 'object' | 'part'> {
  readonly texts: () => Pick<TopologyNode, 'label' | 'detail'>
  /** What policies may be attached to. */
  readonly targets: () => readonly string[]
  /** If omitted, that of the object. */
  readonly health?: ObjectHealth
}

const noTargets = () => []

class TopologyBuilder {
  readonly #moment: Moment
  /** Keys of the Gateways and routes of this controller. */
  readonly #decided: readonly ObjectKey[]
  readonly #all: readonly Resource[]
  readonly #policies: ReturnType<typeof policiesByTarget>
  readonly #nodes = new Map<string, GraphNode>()
  readonly #backends: GraphNode[] = []
  /** An edge may be in the list more than once. */
  readonly #edges: TopologyEdge[] = []

  constructor(moment: Moment) {
    this.#moment = moment
    this.#decided = [...moment.statuses.entries()].map(([key]) => key)
    const resources = [...moment.resources.entries()].map(([, one]) => one)
    this.#all = resources.map(({ resource }) => resource)
    this.#policies = policiesByTarget(resources)
  }

  build(): { readonly nodes: readonly GraphNode[]; readonly edges: readonly TopologyEdge[] } {
    for (const key of this.#decided) if (key.startsWith('Gateway/')) this.#gateway(key)
    for (const resource of this.#all) {
      if (resource.type === 'listener') this.#listener(resource)
      if (resource.type === 'route') this.#rule(resource)
      if (resource.type === 'stream') this.#stream(resource)
    }
    for (const key of this.#decided) if (/^\w+Route\//.test(key)) this.#route(key)
    this.#endpoints()
    for (const resource of this.#all) if (resource.type === 'backend') this.#parts(resource)
    return { nodes: [...this.#nodes.values()], edges: this.#edges }
  }

  /** The node as it is drawn. */
  describe(node: GraphNode): TopologyNode {
    const { id, type, object, texts, part } = node
    const health = node.health ?? healthOfObject(this.#moment, object).health
    const policies = this.policiesOf(node)
    return { id, type, object, ...texts(), health, policies, ...(part !== undefined && { part }) }
  }

  /** Keys of the policies that are attached to a node. */
  policiesOf({ targets }: GraphNode): readonly ObjectKey[] {
    if (this.#policies.size === 0) return []
    const found = targets().flatMap((target) => this.#policies.get(target) ?? [])
    const names = found.map(({ policy, target }) =>
      target.inline === true ? objectKey(target) : objectKey({ kind: 'GatewayPolicy', ...policy }),
    )
    return [...new Set(names)].sort()
  }

  #add(node: GraphNode): string {
    if (!this.#nodes.has(node.id)) {
      this.#nodes.set(node.id, node)
      if (node.type === 'backend') this.#backends.push(node)
    }
    return node.id
  }

  #link(from: string, to: string, label = ''): void {
    this.#edges.push({ from, to, label })
  }

  #gateway(object: ObjectKey): string {
    return this.#object('gateway', object, ({ namespace }) => `Gateway ${namespace}`)
  }

  #route(object: ObjectKey): string {
    return this.#object('route', object, ({ kind, namespace }) => `${kind} ${namespace}`)
  }

  /** A node that is a whole object. */
  #object(
    type: 'gateway' | 'route',
    object: ObjectKey,
    detail: (ref: ObjectRef) => string,
  ): string {
    if (this.#nodes.has(object)) return object
    const ref = () => parseObjectKey(object)
    return this.#add({
      id: object,
      type,
      object,
      texts: () => ({ label: ref().name, detail: detail(ref()) }),
      targets: () => [targetKey(ref())],
    })
  }

  #listener(listener: Resource & { type: 'listener' }): void {
    const { key, gateway, owner, section, port, protocol, hostname } = listener
    const detail = `${protocol} ${port}${hostname === '' ? '' : ` ${hostname}`}`
    this.#add({
      id: key,
      type: 'listener',
      object: objectKey(owner),
      texts: () => ({ label: section, detail }),
      targets: () => [targetKey({ ...owner, section })],
    })
    this.#link(this.#gateway(objectKey({ kind: 'Gateway', ...gateway })), key)
  }

  #rule(rule: Resource & { type: 'route' }): void {
    const { key, route } = rule
    const object = objectKey(route)
    const id = this.#route(object)
    for (const { listener } of rule.attachments) this.#link(listener, id)
    this.#add({
      id: key,
      type: 'rule',
      object,
      texts: () => ruleTexts(rule),
      targets: () => ruleTargets(rule),
    })
    this.#link(id, key)
    this.#targets(key, object, rule.backends)
  }

  #stream({ route, attachments, backends }: Resource & { type: 'stream' }): void {
    const object = objectKey(route)
    const id = this.#route(object)
    for (const { listener } of attachments) this.#link(listener, id)
    this.#targets(id, object, backends)
  }

  #targets(from: string, object: ObjectKey, backends: readonly Backend[]): void {
    for (const { target, weight } of backends) {
      const id =
        target.type === 'invalid' ? this.#invalid(from, object, target) : this.#backend(target)
      this.#link(from, id, backends.length > 1 ? `weight ${weight}` : '')
    }
  }

  #invalid(from: string, object: ObjectKey, target: BackendTarget & { type: 'invalid' }): string {
    const { reason, message } = target
    const texts = () => ({ label: reason, detail: message })
    const id = `${from}>invalid ${message}`
    return this.#add({ id, type: 'backend', object, texts, targets: noTargets, health: 'problem' })
  }

  #backend(target: Exclude<BackendTarget, { type: 'invalid' }>): string {
    const ref = targetObject(target)
    const object = objectKey(ref)
    const port = target.type === 'service' ? `:${target.port}` : ''
    const id = `${object}${port}`
    if (this.#nodes.has(id)) return id
    return this.#add({
      id,
      type: 'backend',
      object,
      texts: () => ({ label: `${ref.name}${port}`, detail: `${ref.kind} ${ref.namespace}` }),
      targets: () => [targetKey(ref)],
    })
  }

  /** The providers or MCP servers of a backend, if requests lead to it. */
  #parts({ namespace, name, destination }: Resource & { type: 'backend' }): void {
    const object = objectKey({ kind: 'GatewayBackend', namespace, name })
    if (!this.#nodes.has(object)) return
    const parts =
      destination.type === 'ai'
        ? destination.groups.flat().map((provider) => providerPart(provider))
        : destination.type === 'mcp'
          ? destination.targets.map((target) => targetPart(target))
          : []
    for (const [at, { part, ...texts }] of parts.entries()) {
      const id = this.#add({
        id: `${object} part ${at}`,
        type: destination.type === 'ai' ? 'provider' : 'target',
        object,
        part,
        texts: () => texts,
        targets: () => [targetKey({ kind: 'GatewayBackend', namespace, name, section: part })],
        health: 'ok',
      })
      this.#link(object, id)
    }
  }

  /** One node for the endpoints of a Service, because there may be thousands. */
  #endpoints(): void {
    const workloads = this.#all.filter((one) => one.type === 'workload')
    const byService = Map.groupBy(
      workloads,
      ({ namespace, service }) => `Service/${namespace}/${service}`,
    )
    for (const { id: backend, object, health } of this.#backends) {
      if (health !== undefined || !object.startsWith('Service/')) continue
      const endpoints = (byService.get(object) ?? []).flatMap((one) => one.endpoints)
      const ready = endpoints.filter((endpoint) => endpoint.ready).length
      const id = this.#add({
        id: `${object} endpoints`,
        type: 'endpoints',
        object,
        texts: () => ({
          label: `${endpoints.length} endpoint${endpoints.length === 1 ? '' : 's'}`,
          detail: endpoints.length === 0 ? 'none' : `${ready} ready`,
        }),
        targets: noTargets,
        health: ready === 0 ? 'problem' : ready < endpoints.length ? 'warning' : 'ok',
      })
      this.#link(backend, id)
    }
  }
}

type RouteRule = Resource & { type: 'route' }
type Backend = Pick<RouteRule['backends'][number], 'target' | 'weight'>

function ruleTexts({ matches, ruleIndex, ruleName, unusable }: RouteRule) {
  const paths = matches.map(({ path, method = '' }) => `${method} ${path.value}`.trim())
  const label = ruleName ?? `rule ${ruleIndex}`
  return { label, detail: unusable === undefined ? paths.join(', ') : 'answers 500' }
}

const ruleTargets = ({ route, ruleIndex, ruleName }: RouteRule) => [
  ...(ruleName === undefined ? [] : [targetKey({ ...route, section: ruleName })]),
  targetKey({ ...route, section: `${ruleIndex}`, inline: true }),
]

interface PartTexts {
  readonly part: string
  readonly label: string
  readonly detail: string
}

/** Metrics name a provider without a name by its host and port. */
function providerPart({ name, config, host, port = 443 }: ModelProvider): PartTexts {
  const { vendor, systemName = vendor, model } = config
  const part = name ?? (host === undefined ? '' : `${host}:${port}`)
  return { part, label: name ?? systemName, detail: `${systemName} ${model ?? ''}`.trim() }
}

function targetPart({ name, destination, path }: McpTarget): PartTexts {
  const host = destination.type === 'static' ? destination.host : destination.name
  return { part: name, label: name, detail: `${host}:${destination.port}${path}` }
}

/** Some nodes, everything before them and everything behind them. */
function connectedTo(
  own: readonly GraphNode[],
  nodes: readonly GraphNode[],
  edges: readonly TopologyEdge[],
): GraphNode[] {
  const reach = (from: 'from' | 'to', to: 'from' | 'to') => {
    const next = Map.groupBy(edges, (edge) => edge[from])
    const found = new Set(own.map(({ id }) => id))
    for (const id of found) for (const edge of next.get(id) ?? []) found.add(edge[to])
    return found
  }
  const reached = reach('from', 'to').union(reach('to', 'from'))
  return nodes.filter(({ id }) => reached.has(id))
}

/**
 * The nodes that are drawn. What is broken comes first, by its conditions or its requests, with what is connected to
 * it, so that thousands of healthy routes do not hide it.
 */
function brokenFirst(
  moment: Moment,
  nodes: readonly GraphNode[],
  edges: readonly TopologyEdge[],
  broken: ReadonlySet<string>,
): GraphNode[] {
  const bad = nodes.filter(({ type, object, health }) => {
    const { namespace, name } = parseObjectKey(object)
    if (broken.has(`${type} ${namespace}/${name}`)) return true
    return health === 'problem' || checkStatus(moment.statuses.get(object)).bad.length > 0
  })
  if (bad.length === 0) return nodes.slice(0, maxNodes)
  const first = connectedTo(bad.slice(0, maxNodes), nodes, edges)
  return [...new Set([...first, ...nodes])].slice(0, maxNodes)
}
