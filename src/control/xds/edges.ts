/**
 * The graph of references, from which it follows which resources each Gateway needs. Nodes are keys of
 * resources, objects that policies may target, and one root for each Gateway.
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
 * Every edge belongs to the resource at one of its ends and is removed with it. Edges are read from the
 * shape of a resource, not from its type, so that new types of routes and policies need no code here.
 * Resources that cannot be reached are not sent.
 */
import {
  eachDestination,
  eachDestinationOfConfig,
  isMembers,
  isName,
  namedObject,
  targetKey,
} from '../../ground/model/destinations.ts'
import { type ObjectName, type ObjectRef, objectKey } from '../../ground/model/names.ts'
import {
  type Resource,
  type ResourceKey,
  secretKey,
  secretRefsOf,
} from '../../ground/model/resources.ts'

/** Key of a resource, of an object or of a Gateway's root. */
export type EdgeNode = string
export type Edge = readonly [from: EdgeNode, to: EdgeNode]

/** The root of everything that the proxies of a Gateway need. */
export function gatewayRoot({ namespace, name }: ObjectName): EdgeNode {
  return `gateway:${namespace}/${name}`
}

const objectNode = (kind: string, { namespace, name }: ObjectName): EdgeNode =>
  `object:${objectKey({ kind, namespace, name })}`

type Members = Readonly<Record<string, unknown>>

/** Returns edges from the resources and objects that the resource is a part of. */
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

/** Returns the nodes of the objects whose policies apply to the resource. */
function objectsOf(resource: Members): EdgeNode[] {
  const objects: EdgeNode[] = []
  if (isName(resource.gateway)) objects.push(objectNode('Gateway', resource.gateway))
  for (const ref of [resource.owner, resource.route]) {
    if (isName(ref)) objects.push(objectNode(String(ref.kind), ref))
  }
  const own = isName(resource) ? namedObject(resource) : undefined
  if (own !== undefined) objects.push(objectNode(own.kind, own))
  return objects
}

/** Returns the edges of a resource, without duplicates. */
export function edgesOf(resource: Resource): readonly Edge[] {
  const { key } = resource
  // Secrets refer to nothing, and may be large.
  if (resource.type === 'secret') return []
  const members = resource as unknown as Members
  const to = new Set<EdgeNode>(objectsOf(members))
  // A policy's target leads to the policy, not the other way round.
  const { target, config, ...rest } = members
  const addEdgeTo = (ref: ObjectRef) => void to.add(targetKey(ref))
  if (!isName(target)) eachDestination(target, addEdgeTo)
  eachDestination(rest, addEdgeTo)
  eachDestinationOfConfig(config, addEdgeTo)
  for (const { digest } of secretRefsOf(resource)) to.add(secretKey(digest))
  to.delete(key)
  const from = new Map(edgesFromParents(key, members).map((edge) => [edge[0], edge]))
  return [...from.values(), ...[...to].map((node): Edge => [key, node])]
}
