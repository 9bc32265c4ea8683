/** The way of requests as a graph: Gateway, listeners, routes, rules, backends, endpoints. */

import { policiesByTarget } from '../../src/explain/effective-policies.ts'
import { targetObject } from '../../src/model/destinations.ts'
import { type ObjectKey, type ObjectRef, objectKey, parseObjectKey } from '../../src/model/names.ts'
import type { BackendTarget, Resource } from '../../src/model/resources.ts'
import { targetKey } from '../../src/policies/merge.ts'
import type { Moment } from '../log/loaded-log.ts'
import { layOut, type TopologyEdge, type TopologyNode } from './layout.ts'
import { healthOfObject } from './objects.ts'

interface TopologyParams {
  /** Key of an object: only nodes that requests through it pass are shown. */
  readonly focus?: ObjectKey
}

const noPolicies: readonly never[] = []

/** Maximum number of nodes that are drawn. */
const maxNodes = 200

export async function topologyModel(moment: Moment, { focus = '' }: TopologyParams) {
  const builder = new TopologyBuilder(moment)
  const { nodes, edges } = builder.build()
  const focused = focus === '' ? nodes : connectedTo(focus, nodes, edges)
  const shown = focused.slice(0, maxNodes).map((node) => builder.describe(node))
  const ids = new Set(shown.map(({ id }) => id))
  const drawn = edges.filter(({ from, to }) => ids.has(from) && ids.has(to))
  return { ...(await layOut(shown, drawn)), total: focused.length, all: nodes.length }
}

class TopologyBuilder {
  readonly #moment: Moment
  /** Gateways and routes of this controller. */
  readonly #decided: readonly ObjectRef[]
  readonly #all: readonly Resource[]
  readonly #policies: ReturnType<typeof policiesByTarget>
  readonly #nodes = new Map<string, TopologyNode>()
  /** By their first and then by their second node: joined names would cost more than the rest of the graph. */
  readonly #edges = new Map<string, Map<string, TopologyEdge>>()

  constructor(moment: Moment) {
    this.#moment = moment
    this.#decided = [...moment.statuses.entries()].map(([key]) => parseObjectKey(key))
    const resources = [...moment.resources.entries()].map(([, one]) => one)
    this.#all = resources.map(({ resource }) => resource)
    this.#policies = policiesByTarget(resources)
  }

  build() {
    for (const ref of this.#decided) if (ref.kind === 'Gateway') this.#gateway(ref)
    for (const resource of this.#all) {
      if (resource.type === 'listener') this.#listener(resource)
      if (resource.type === 'route') this.#rule(resource)
      if (resource.type === 'stream') this.#stream(resource)
    }
    for (const ref of this.#decided) if (/Route$/.test(ref.kind)) this.#route(ref)
    this.#endpoints()
    return {
      nodes: [...this.#nodes.values()],
      edges: [...this.#edges.values()].flatMap((edges) => [...edges.values()]),
    }
  }

  /** Adds the health of its object to a node that has none of its own. Only drawn nodes need it. */
  describe(node: TopologyNode): TopologyNode {
    if (node.health !== undefined) return node
    return { ...node, health: healthOfObject(this.#moment, node.object).health }
  }

  #add(node: Omit<TopologyNode, 'health' | 'policies'>, targets: readonly string[]): string {
    if (!this.#nodes.has(node.id)) {
      const found = targets.flatMap((target) => this.#policies.get(target) ?? [])
      const names = found.map(({ policy, target }) =>
        target.inline === true
          ? objectKey(target)
          : objectKey({ kind: 'GatewayPolicy', ...policy }),
      )
      const policies = names.length === 0 ? noPolicies : [...new Set(names)].sort()
      this.#nodes.set(node.id, { ...node, health: undefined, policies })
    }
    return node.id
  }

  #link(from: string, to: string, label = ''): void {
    const edges = this.#edges.get(from) ?? new Map<string, TopologyEdge>()
    this.#edges.set(from, edges.set(to, { from, to, label }))
  }

  #gateway(ref: ObjectRef): string {
    const object = objectKey(ref)
    return this.#add(
      { id: object, type: 'gateway', object, label: ref.name, detail: `Gateway ${ref.namespace}` },
      [targetKey(ref)],
    )
  }

  #listener({
    key,
    gateway,
    owner,
    section,
    port,
    protocol,
    hostname,
  }: Resource & { type: 'listener' }) {
    const detail = `${protocol} ${port}${hostname === '' ? '' : ` ${hostname}`}`
    const object = objectKey(owner)
    const node = { id: key, type: 'listener' as const, object, label: section, detail }
    this.#add(node, [targetKey({ ...owner, section })])
    this.#link(this.#gateway({ kind: 'Gateway', ...gateway }), key)
  }

  #route(ref: ObjectRef): string {
    const object = objectKey(ref)
    return this.#add(
      {
        id: object,
        type: 'route',
        object,
        label: ref.name,
        detail: `${ref.kind} ${ref.namespace}`,
      },
      [targetKey(ref)],
    )
  }

  #rule(rule: Resource & { type: 'route' }): void {
    const { key, route, ruleIndex, ruleName, matches, unusable } = rule
    const id = this.#route(route)
    for (const { listener } of rule.attachments) this.#link(listener, id)
    const paths = matches.map(({ path, method = '' }) => `${method} ${path.value}`.trim())
    const label = ruleName ?? `rule ${ruleIndex}`
    const detail = unusable === undefined ? paths.join(', ') : 'answers 500'
    const targets = [
      ...(ruleName === undefined ? [] : [targetKey({ ...route, section: ruleName })]),
      targetKey({ ...route, section: `${ruleIndex}`, inline: true }),
    ]
    this.#add({ id: key, type: 'rule', object: objectKey(route), label, detail }, targets)
    this.#link(id, key)
    for (const { target, weight } of rule.backends) {
      this.#backend(key, target, rule.backends.length > 1 ? `weight ${weight}` : '')
    }
  }

  #stream({ route, attachments, backends }: Resource & { type: 'stream' }): void {
    const id = this.#route(route)
    for (const { listener } of attachments) this.#link(listener, id)
    for (const { target, weight } of backends) {
      this.#backend(id, target, backends.length > 1 ? `weight ${weight}` : '')
    }
  }

  #backend(from: string, target: BackendTarget, label: string): void {
    if (target.type === 'invalid') {
      const id = `${from}>invalid ${target.message}`
      const object = this.#nodes.get(from)?.object ?? ''
      this.#nodes.set(id, {
        id,
        type: 'backend',
        object,
        label: target.reason,
        detail: target.message,
        health: 'problem',
        policies: [],
      })
      this.#link(from, id, label)
      return
    }
    const ref = targetObject(target)
    const object = objectKey(ref)
    const port = target.type === 'service' ? `:${target.port}` : ''
    const id = `${object}${port}`
    const node = { id, type: 'backend' as const, object, label: `${ref.name}${port}` }
    this.#add({ ...node, detail: `${ref.kind} ${ref.namespace}` }, [targetKey(ref)])
    this.#link(from, id, label)
  }

  /** One node for the endpoints of a Service, because there may be thousands. */
  #endpoints(): void {
    const workloads = this.#all.filter((one) => one.type === 'workload')
    const byService = Map.groupBy(
      workloads,
      ({ namespace, service }) => `Service/${namespace}/${service}`,
    )
    for (const node of [...this.#nodes.values()]) {
      if (node.type !== 'backend' || !node.object.startsWith('Service/')) continue
      const endpoints = (byService.get(node.object) ?? []).flatMap((one) => one.endpoints)
      const ready = endpoints.filter((endpoint) => endpoint.ready).length
      const id = `${node.object} endpoints`
      this.#nodes.set(id, {
        id,
        type: 'endpoints',
        object: node.object,
        label: `${endpoints.length} endpoint${endpoints.length === 1 ? '' : 's'}`,
        detail: endpoints.length === 0 ? 'none' : `${ready} ready`,
        health: ready === 0 ? 'problem' : ready < endpoints.length ? 'warning' : 'ok',
        policies: [],
      })
      this.#link(node.id, id)
    }
  }
}

/** The nodes of an object, everything before them and everything behind them. */
function connectedTo(
  focus: ObjectKey,
  nodes: readonly TopologyNode[],
  edges: readonly TopologyEdge[],
): TopologyNode[] {
  const own = nodes.filter(({ object, policies }) => object === focus || policies.includes(focus))
  const reach = (from: 'from' | 'to', to: 'from' | 'to') => {
    const next = Map.groupBy(edges, (edge) => edge[from])
    const found = new Set(own.map(({ id }) => id))
    for (const id of found) for (const edge of next.get(id) ?? []) found.add(edge[to])
    return found
  }
  const reached = reach('from', 'to').union(reach('to', 'from'))
  return nodes.filter(({ id }) => reached.has(id))
}
