/**
 * Adding and removing what a table decides by. A route is one copied specification in one list, in
 * order of precedence (Gateway API HTTPRouteRule.matches), of the node that its host and path lead
 * to; routes of one node differ in predicates, age and name only.
 *
 *     route: +0 MAGIC  +4 NEXT  +8 NODE  +12 LIST (0 FIRST, 1 SECOND)  +16 specification
 */
import {
  ERROR_ARGUMENT,
  ERROR_DUPLICATE,
  ERROR_MEMORY,
  ERROR_UNKNOWN,
  HOST_ANY,
  HOST_LIMIT,
  HOST_WILDCARD,
  PATH_PREFIX,
  PATH_REGEX,
  PREDICATE_LIMIT,
  PREDICATE_NAME,
  PREDICATE_PATTERN,
  PREDICATE_KIND,
  PREDICATE_SIZE,
  PREDICATE_VALUE,
  ROUTE_CREATED,
  ROUTE_FIELD_COUNT,
  ROUTE_HOST,
  ROUTE_HOST_KIND,
  ROUTE_ID,
  ROUTE_MATCH,
  ROUTE_METHOD,
  ROUTE_NAME,
  ROUTE_PATH,
  ROUTE_PATH_KIND,
  ROUTE_PREDICATES,
  ROUTE_QUERY_COUNT,
  ROUTE_RULE,
  ROUTE_SCOPE,
} from '../abi'
import { blockAlloc, blockFree, isReadable } from '../arena'
import { compareBytes, copyFolded, foldInPlace } from '../bytes'
import { fail } from '../refusal'
import { prepareFields } from './predicate'
import {
  dropTable,
  findNode,
  KIND_GROUP,
  KIND_ID,
  KIND_LISTENER,
  KIND_SEGMENT,
  newTable,
  Node,
  obtainNode,
  pruneNode,
  Table,
  tableOf,
} from './table'

@unmanaged
export class Route {
  magic: u32
  next: u32
  node: u32
  list: u32
}

const ROUTE_HEADER: usize = 16
const MAGIC: u32 = 0x45544f52

/** A listener's hostname in lower case; copies run up to 7 bytes over. */
const LISTENER_HOST: usize = memory.data(264)

// @ts-ignore: decorator
@inline
export function specOf(route: Route): usize {
  return changetype<usize>(route) + ROUTE_HEADER
}

// --- precedence --------------------------------------------------------------------------------------

// @ts-ignore: decorator
@inline
function difference(a: usize, b: usize, field: usize): i32 {
  return load<i32>(a + field) - load<i32>(b + field)
}

function compareNames(a: usize, b: usize): i32 {
  return compareBytes(
    a + <usize>load<u32>(a + ROUTE_NAME), <usize>load<u32>(a + ROUTE_NAME, 4),
    b + <usize>load<u32>(b + ROUTE_NAME), <usize>load<u32>(b + ROUTE_NAME, 4),
  )
}

/** Less than zero when specification `a` goes first. Paths differ in a list of patterns only. */
function compareSpecs(a: usize, b: usize): i32 {
  const byPath = difference(b, a, ROUTE_PATH + 4)
  if (byPath != 0 && load<i32>(a + ROUTE_PATH_KIND) == PATH_REGEX) return byPath
  const byMethod =
    <i32>(load<i32>(b + ROUTE_METHOD, 4) != 0) - <i32>(load<i32>(a + ROUTE_METHOD, 4) != 0)
  if (byMethod != 0) return byMethod
  const byFields = difference(b, a, ROUTE_FIELD_COUNT)
  if (byFields != 0) return byFields
  const byQueries = difference(b, a, ROUTE_QUERY_COUNT)
  if (byQueries != 0) return byQueries
  const createdA = load<f64>(a + ROUTE_CREATED)
  const createdB = load<f64>(b + ROUTE_CREATED)
  if (createdA != createdB) return createdA < createdB ? -1 : 1
  const byName = compareNames(a, b)
  if (byName != 0) return byName
  const byRule = difference(a, b, ROUTE_RULE)
  return byRule != 0 ? byRule : difference(a, b, ROUTE_MATCH)
}

// --- validation ----------------------------------------------------------------------------------------

/** Is the (offset, length) pair at `at` within the specification? */
// @ts-ignore: decorator
@inline
function isInside(at: usize, size: i32): bool {
  const offset = load<i32>(at)
  const length = load<i32>(at, 4)
  return offset >= 0 && length >= 0 && offset <= size && length <= size - offset
}

function arePredicatesSane(spec: usize, size: i32, count: i32): bool {
  let predicate = spec + ROUTE_PREDICATES
  for (let i = 0; i < count; i++, predicate += PREDICATE_SIZE) {
    const kind = load<i32>(predicate + PREDICATE_KIND)
    if (kind < 0 || kind > PREDICATE_PATTERN) return false
    if (!isInside(predicate + PREDICATE_NAME, size)) return false
    if (!isInside(predicate + PREDICATE_VALUE, size)) return false
  }
  return true
}

function isHostSane(kind: i32, bytes: usize, length: i32): bool {
  if (kind < HOST_ANY || kind > HOST_WILDCARD || length > HOST_LIMIT) return false
  if (kind == HOST_ANY) return length == 0
  return length > 0 && (kind != HOST_WILDCARD || load<u8>(bytes) == 0x2e)
}

function isPathSane(spec: usize): bool {
  const kind = load<i32>(spec + ROUTE_PATH_KIND)
  if (kind < 0 || kind > PATH_REGEX) return false
  if (kind == PATH_REGEX) return true
  const length = load<i32>(spec + ROUTE_PATH, 4)
  return length > 0 && load<u8>(spec + <usize>load<u32>(spec + ROUTE_PATH)) == 0x2f
}

function isSpecSane(spec: usize, size: i32): bool {
  if (size < ROUTE_PREDICATES || !isReadable(spec, <usize>size)) return false
  if (load<i32>(spec + ROUTE_ID) < 0 || load<i32>(spec + ROUTE_SCOPE) < 0) return false
  if (!isInside(spec + ROUTE_HOST, size) || !isInside(spec + ROUTE_PATH, size)) return false
  if (!isInside(spec + ROUTE_NAME, size) || !isInside(spec + ROUTE_METHOD, size)) return false
  const fields = load<i32>(spec + ROUTE_FIELD_COUNT)
  const queries = load<i32>(spec + ROUTE_QUERY_COUNT)
  if (fields < 0 || queries < 0 || fields > PREDICATE_LIMIT || queries > PREDICATE_LIMIT) return false
  if (size < ROUTE_PREDICATES + (fields + queries) * PREDICATE_SIZE) return false
  if (!arePredicatesSane(spec, size, fields + queries)) return false
  const host = spec + <usize>load<u32>(spec + ROUTE_HOST)
  if (!isHostSane(load<i32>(spec + ROUTE_HOST_KIND), host, load<i32>(spec + ROUTE_HOST, 4))) {
    return false
  }
  return isPathSane(spec)
}

// --- routes ----------------------------------------------------------------------------------------------

/** The node of an exact or prefix path below its group; null, with nothing left over, without room. */
function obtainPath(table: Table, group: Node, start: usize, end: usize): Node | null {
  let node = group
  let p = start
  while (p < end) {
    let stop = p + 1
    while (stop < end && load<u8>(stop) != 0x2f) stop++
    const parent = <u32>changetype<usize>(node)
    const child = obtainNode(table, KIND_SEGMENT, parent, p + 1, stop - p - 1)
    if (!child) {
      pruneNode(table, node)
      return null
    }
    node = child
    p = stop
  }
  return node
}

/** The node that a specification's host and path lead to; null without room. */
function obtainPlace(table: Table, spec: usize): Node | null {
  const host = spec + <usize>load<u32>(spec + ROUTE_HOST)
  const hostKind = load<u32>(spec + ROUTE_HOST_KIND)
  const group = obtainNode(
    table, KIND_GROUP + hostKind, load<u32>(spec + ROUTE_SCOPE),
    host, <usize>load<u32>(spec + ROUTE_HOST, 4),
  )
  const pathKind = load<i32>(spec + ROUTE_PATH_KIND)
  if (!group || pathKind == PATH_REGEX) return group
  const path = spec + <usize>load<u32>(spec + ROUTE_PATH)
  let end = path + <usize>load<u32>(spec + ROUTE_PATH, 4)
  // An exact `/` is one empty segment; a prefix `/` is none: the group itself.
  if (pathKind == PATH_PREFIX) while (end > path && load<u8>(end - 1) == 0x2f) end--
  return obtainPath(table, group, path, end)
}

/** Address of the word that points to the first route at least as late as `spec`. */
function findLink(node: Node, list: u32, spec: usize): usize {
  let link = changetype<usize>(node) + (list == 0 ? offsetof<Node>('first') : offsetof<Node>('second'))
  while (load<u32>(link) != 0) {
    const other = changetype<Route>(<usize>load<u32>(link))
    if (compareSpecs(spec, specOf(other)) < 0) break
    link = changetype<usize>(other) + offsetof<Route>('next')
  }
  return link
}

function insert(node: Node, route: Route): void {
  const spec = specOf(route)
  const list: u32 = load<i32>(spec + ROUTE_PATH_KIND) == PATH_PREFIX ? 1 : 0
  const link = findLink(node, list, spec)
  route.magic = MAGIC
  route.list = list
  route.node = <u32>changetype<usize>(node)
  route.next = load<u32>(link)
  store<u32>(link, <u32>changetype<usize>(route))
  node.uses++
}

/** A route's own copy of its specification, names and host in lower case; null without room. */
function copySpec(spec: usize, size: i32): Route | null {
  const address = blockAlloc(ROUTE_HEADER + <usize>size)
  if (address == 0) return null
  const route = changetype<Route>(address)
  const copy = specOf(route)
  memory.copy(copy, spec, <usize>size)
  foldInPlace(copy + <usize>load<u32>(copy + ROUTE_HOST), <usize>load<u32>(copy + ROUTE_HOST, 4))
  prepareFields(copy)
  return route
}

/** Adds a route; 0, ERROR_ARGUMENT, ERROR_DUPLICATE for a taken id, or ERROR_MEMORY. */
export function addRoute(handle: i32, spec: usize, size: i32): i32 {
  const table = tableOf(handle)
  if (!table || !isSpecSane(spec, size)) return fail(ERROR_ARGUMENT)
  const id = load<u32>(spec + ROUTE_ID)
  if (findNode(table, KIND_ID, id, 0, 0)) return fail(ERROR_DUPLICATE)
  const route = copySpec(spec, size)
  if (!route) return fail(ERROR_MEMORY)
  const entry = obtainNode(table, KIND_ID, id, 0, 0)
  const place = entry ? obtainPlace(table, specOf(route)) : null
  if (!entry || !place) {
    if (entry) pruneNode(table, entry)
    blockFree(changetype<usize>(route))
    return fail(ERROR_MEMORY)
  }
  insert(place, route)
  entry.first = <u32>changetype<usize>(route)
  entry.uses = 1
  table.routes++
  return 0
}

/** Removes a route; 0, ERROR_ARGUMENT or ERROR_UNKNOWN. */
export function removeRoute(handle: i32, id: i32): i32 {
  const table = tableOf(handle)
  if (!table) return fail(ERROR_ARGUMENT)
  const entry = findNode(table, KIND_ID, <u32>id, 0, 0)
  if (!entry) return fail(ERROR_UNKNOWN)
  const route = changetype<Route>(<usize>entry.first)
  const node = changetype<Node>(<usize>route.node)
  let link = changetype<usize>(node) + (route.list == 0 ? offsetof<Node>('first') : offsetof<Node>('second'))
  while (load<u32>(link) != entry.first) {
    link = <usize>load<u32>(link) + offsetof<Route>('next')
  }
  store<u32>(link, route.next)
  blockFree(changetype<usize>(route))
  node.uses--
  pruneNode(table, node)
  entry.uses = 0
  pruneNode(table, entry)
  table.routes--
  return 0
}

/** How many routes a table holds; ERROR_ARGUMENT. */
export function countRoutes(handle: i32): i32 {
  const table = tableOf(handle)
  return table ? <i32>table.routes : fail(ERROR_ARGUMENT)
}

// --- listeners and tables ------------------------------------------------------------------------------

/** A listener's hostname -> scope; 0, ERROR_ARGUMENT, ERROR_DUPLICATE or ERROR_MEMORY. */
export function addListener(handle: i32, kind: i32, host: usize, length: i32, scope: i32): i32 {
  const table = tableOf(handle)
  if (!table || scope < 0 || length < 0 || !isReadable(host, <usize>length)) return fail(ERROR_ARGUMENT)
  if (!isHostSane(kind, host, length)) return fail(ERROR_ARGUMENT)
  copyFolded(LISTENER_HOST, host, <usize>length)
  const node = obtainNode(table, KIND_LISTENER + kind, 0, LISTENER_HOST, <usize>length)
  if (!node) return fail(ERROR_MEMORY)
  if (node.uses != 0) return fail(ERROR_DUPLICATE)
  node.first = <u32>scope
  node.uses = 1
  return 0
}

/** Forgets a listener's hostname; 0, ERROR_ARGUMENT or ERROR_UNKNOWN. Routes of its scope stay. */
export function removeListener(handle: i32, kind: i32, host: usize, length: i32): i32 {
  const table = tableOf(handle)
  if (!table || length < 0 || !isReadable(host, <usize>length)) return fail(ERROR_ARGUMENT)
  if (!isHostSane(kind, host, length)) return fail(ERROR_ARGUMENT)
  copyFolded(LISTENER_HOST, host, <usize>length)
  const node = findNode(table, KIND_LISTENER + kind, 0, LISTENER_HOST, <usize>length)
  if (!node) return fail(ERROR_UNKNOWN)
  node.uses = 0
  pruneNode(table, node)
  return 0
}

/** A handle, or ERROR_MEMORY. */
export function createTable(): i32 {
  const table = newTable()
  return table ? <i32>changetype<usize>(table) : fail(ERROR_MEMORY)
}

/** Frees a table with everything in it; 0 or ERROR_ARGUMENT. */
export function freeTable(handle: i32): i32 {
  const table = tableOf(handle)
  if (!table) return fail(ERROR_ARGUMENT)
  const count = table.mask + 1
  for (let i: u32 = 0; i < count; i++) {
    let at = load<u32>(<usize>table.buckets + (<usize>i << 2))
    while (at != 0) {
      const node = changetype<Node>(<usize>at)
      at = node.next
      if (node.kind == KIND_ID) blockFree(<usize>node.first)
      blockFree(changetype<usize>(node))
    }
  }
  dropTable(table)
  return 0
}
