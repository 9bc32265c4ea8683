/**
 * What leads to what, so that a proxy gets what its Gateway needs and nothing else. Nodes are keys
 * of resources, objects that policies may target, and one root for each Gateway.
 *
 * ```
 *   gateway ──► listener ──► route ──► service | backend ──► workload
 *                  │           ├─────► pool ──► pod, service of its picker
 *                  │           │              │
 *                  ├──► secret │              │
 *                  ▼           ▼              ▼
 *              object:…    object:…       object:…  ──► policy ──► service | backend | secret
 * ```
 *
 * Every edge is told by exactly one resource, which is one of its two ends: it goes when that
 * resource goes. Read from the shape of a resource rather than from its type, so that a new type of
 * route or policy is scoped without a line here; what nothing leads to is sent to nobody.
 */
import {
  eachDestination,
  eachDestinationOfConfig,
  isMembers,
  isName,
} from '../model/destinations.ts'
import { type ObjectName, type ObjectRef, objectKey } from '../model/names.ts'
import { type Resource, type ResourceKey, secretKey, secretRefsOf } from '../model/resources.ts'

/** Key of a resource, or of one of the places below. */
export type Node = string
export type Edge = readonly [from: Node, to: Node]

/** Where the scope of a Gateway's proxies begins. */
export function gatewayRoot({ namespace, name }: ObjectName): Node {
  return `gateway:${namespace}/${name}`
}

const objectNode = (kind: string, { namespace, name }: ObjectName): Node =>
  `object:${objectKey({ kind, namespace, name })}`

type Members = Readonly<Record<string, unknown>>

const destinationTypes: Readonly<Record<string, string>> = {
  Service: 'service',
  GatewayBackend: 'backend',
  InferencePool: 'pool',
}

/** Key of the resource that a destination is. */
function destinationNode({ kind, namespace, name }: ObjectRef): Node {
  return `${destinationTypes[kind]}/${namespace}/${name}`
}

/** What the resource is a part of. */
function edgesFromParents(key: ResourceKey, resource: Members): Edge[] {
  const edges: Edge[] = []
  if (isName(resource.gateway)) edges.push([gatewayRoot(resource.gateway), key])
  if (resource.type === 'workload') {
    edges.push([`service/${String(resource.namespace)}/${String(resource.service)}`, key])
  }
  if (resource.type === 'pod' && Array.isArray(resource.pools)) {
    for (const pool of resource.pools)
      edges.push([`pool/${String(resource.namespace)}/${pool}`, key])
  }
  if (isName(resource.target)) {
    edges.push([objectNode(String(resource.target.kind), resource.target), key])
  }
  for (const attachment of Array.isArray(resource.attachments) ? resource.attachments : []) {
    if (isMembers(attachment)) edges.push([String(attachment.listener), key])
  }
  return edges
}

/** The objects through which policies reach the resource. */
function objectsOf(resource: Members): Node[] {
  const objects: Node[] = []
  if (isName(resource.gateway)) objects.push(objectNode('Gateway', resource.gateway))
  for (const ref of [resource.owner, resource.route]) {
    if (isName(ref)) objects.push(objectNode(String(ref.kind), ref))
  }
  if (resource.type === 'service' && isName(resource)) {
    objects.push(objectNode('Service', resource))
  }
  if (resource.type === 'backend' && isName(resource)) {
    objects.push(objectNode('GatewayBackend', resource))
  }
  if (resource.type === 'pool' && isName(resource)) {
    objects.push(objectNode('InferencePool', resource))
  }
  return objects
}

/** The edges that a resource tells; none twice. */
export function edgesOf(resource: Resource): readonly Edge[] {
  const { key } = resource
  // Values of secrets lead nowhere, and may be large.
  if (resource.type === 'secret') return []
  const members = resource as unknown as Members
  const to = new Set<Node>(objectsOf(members))
  // A policy's target is what leads to the policy, not what the policy leads to.
  const { target, config, ...rest } = members
  const lead = (ref: ObjectRef) => void to.add(destinationNode(ref))
  if (!isName(target)) eachDestination(target, lead)
  eachDestination(rest, lead)
  eachDestinationOfConfig(config, lead)
  for (const { digest } of secretRefsOf(resource)) to.add(secretKey(digest))
  to.delete(key)
  const from = new Map(edgesFromParents(key, members).map((edge) => [edge[0], edge]))
  return [...from.values(), ...[...to].map((node): Edge => [key, node])]
}
