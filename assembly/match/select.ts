/**
 * Which listener and which route a request belongs to (Gateway API: Listener.hostname,
 * HTTPRoute.hostnames, HTTPRouteRule.matches). The listener is the one with the most specific
 * hostname, and there is no second choice. Inside it hostname groups are tried from the most
 * specific on, and a group without a match gives way to the next.
 *
 * Cost: one look-up for each label of the host, one for each path segment that some route shares,
 * and the predicates of the routes met on the way back up.
 */
import {
  ERROR_ARGUMENT,
  HEAD_FIELDS,
  HEAD_FIELD_COUNT,
  HEAD_FIELD_LIMIT,
  HEAD_HOST,
  HEAD_PATH,
  HEAD_ROUTE,
  HEAD_SCOPE,
  HOST_ANY,
  HOST_EXACT,
  HOST_LIMIT,
  HOST_WILDCARD,
  NO_LISTENER,
  NO_ROUTE,
  PATH_REGEX,
  ROUTE_ID,
  ROUTE_PATH_KIND,
  ROUTE_PATH_REGEX,
} from '../abi'
import { isReadable } from '../arena'
import { copyFolded } from '../bytes'
import { fail } from '../refusal'
import { isPatternMatch } from './pattern'
import { isMet } from './predicate'
import { Route, specOf } from './routes'
import { countOf, findNode, KIND_GROUP, KIND_LISTENER, KIND_SEGMENT, Node, Table, tableOf } from './table'

/** The request's hostname in lower case; copies run up to 7 bytes over. */
const HOST: usize = memory.data(264)
let hostLength: usize = 0

const EXACT_LISTENER: u32 = KIND_LISTENER + HOST_EXACT
const WILDCARD_LISTENER: u32 = KIND_LISTENER + HOST_WILDCARD
const EXACT_GROUP: u32 = KIND_GROUP + HOST_EXACT
const WILDCARD_GROUP: u32 = KIND_GROUP + HOST_WILDCARD

/** Takes the record's hostname; length 0 if no hostname of a table could equal it. */
function foldHost(record: usize): void {
  hostLength = 0
  if (load<i32>(record + HEAD_HOST) < 0) return
  const start = <usize>load<u32>(record + HEAD_HOST)
  const length = <usize>load<u32>(record + HEAD_HOST, 4) - start
  if (length > <usize>HOST_LIMIT) return
  copyFolded(HOST, start, length)
  hostLength = length
}

/** Offset of the next dot of HOST after `from`; `hostLength` if no dot follows. */
// @ts-ignore: decorator
@inline
function nextDot(from: usize): usize {
  let p = from + 1
  while (p < hostLength && load<u8>(HOST + p) != 0x2e) p++
  return min(p, hostLength)
}

// --- listener ---------------------------------------------------------------------------------------------

/** The listener for the folded host. */
function findListener(table: Table): Node | null {
  if (countOf(table, EXACT_LISTENER) != 0 && hostLength != 0) {
    const exact = findNode(table, EXACT_LISTENER, 0, HOST, hostLength)
    if (exact) return exact
  }
  if (countOf(table, WILDCARD_LISTENER) != 0) {
    for (let dot = nextDot(0); dot < hostLength; dot = nextDot(dot)) {
      const wildcard = findNode(table, WILDCARD_LISTENER, 0, HOST + dot, hostLength - dot)
      if (wildcard) return wildcard
    }
  }
  return findNode(table, KIND_LISTENER + HOST_ANY, 0, 0, 0)
}

// --- route ---------------------------------------------------------------------------------------------------

/** The first route of a list that the request meets: its id, or NO_ROUTE. */
function tryList(first: u32, record: usize): i32 {
  let at = first
  while (at != 0) {
    const route = changetype<Route>(<usize>at)
    const spec = specOf(route)
    if (isMet(spec, record) && isPathMet(spec, record)) return load<i32>(spec + ROUTE_ID)
    at = route.next
  }
  return NO_ROUTE
}

/** Exact and prefix paths are met by the place of the route; a regex has yet to be asked. */
function isPathMet(spec: usize, record: usize): bool {
  if (load<i32>(spec + ROUTE_PATH_KIND) != PATH_REGEX) return true
  const start = <usize>load<u32>(record + HEAD_PATH)
  const length = <usize>load<u32>(record + HEAD_PATH, 4) - start
  return isPatternMatch(load<i32>(spec + ROUTE_PATH_REGEX), start, length)
}

/** Did `descend` consume the whole path? */
let isWholePath: bool = false

/** The deepest node that the path's segments lead to. */
function descend(table: Table, group: Node, start: usize, end: usize): Node {
  let node = group
  let p = start
  isWholePath = false
  while (true) {
    const segment = p + 1
    let stop = segment
    while (stop < end && load<u8>(stop) != 0x2f) stop++
    const length = stop > segment ? stop - segment : 0
    const parent = <u32>changetype<usize>(node)
    const child = findNode(table, KIND_SEGMENT, parent, segment, length)
    if (!child) return node
    node = child
    p = stop
    if (p >= end) {
      isWholePath = true
      return node
    }
  }
}

/**
 * Exact, then prefixes from the longest on. A path that does not begin with `/` has neither, but for
 * `*`, which asks about the server as a whole (RFC 9110 9.3.7): the prefix `/` stands for all of it.
 */
function tryPath(table: Table, group: Node, record: usize): i32 {
  const start = <usize>load<u32>(record + HEAD_PATH)
  const end = <usize>load<u32>(record + HEAD_PATH, 4)
  if (start < end && load<u8>(start) != 0x2f) {
    return end - start == 1 && load<u8>(start) == 0x2a ? tryList(group.second, record) : NO_ROUTE
  }
  let node = descend(table, group, start, end)
  if (isWholePath) {
    const exact = tryList(node.first, record)
    if (exact >= 0) return exact
  }
  while (true) {
    const prefix = tryList(node.second, record)
    if (prefix >= 0 || node.kind != KIND_SEGMENT) return prefix
    node = changetype<Node>(<usize>node.parent)
  }
}

function tryGroup(table: Table, kind: u32, scope: u32, host: usize, length: usize, record: usize): i32 {
  const group = findNode(table, kind, scope, host, length)
  if (!group) return NO_ROUTE
  const found = tryPath(table, group, record)
  return found >= 0 ? found : tryList(group.first, record)
}

/** The route for the folded host. */
function findRoute(table: Table, scope: u32, record: usize): i32 {
  if (countOf(table, EXACT_GROUP) != 0 && hostLength != 0) {
    const exact = tryGroup(table, EXACT_GROUP, scope, HOST, hostLength, record)
    if (exact >= 0) return exact
  }
  if (countOf(table, WILDCARD_GROUP) != 0) {
    for (let dot = nextDot(0); dot < hostLength; dot = nextDot(dot)) {
      const length = hostLength - dot
      const wildcard = tryGroup(table, WILDCARD_GROUP, scope, HOST + dot, length, record)
      if (wildcard >= 0) return wildcard
    }
  }
  return tryGroup(table, KIND_GROUP + HOST_ANY, scope, 0, 0, record)
}

/** Can the record's counted fields be read? Spans are the caller's promise. */
function isSane(record: usize): bool {
  if (!isReadable(record, HEAD_FIELDS)) return false
  const count = load<i32>(record + HEAD_FIELD_COUNT)
  return count >= 0 && count <= load<i32>(record + HEAD_FIELD_LIMIT)
}

/** Listener of the folded host, noted in the record: its scope or NO_LISTENER. */
function selectListener(table: Table, record: usize): i32 {
  const listener = findListener(table)
  const scope = listener ? <i32>listener.first : NO_LISTENER
  store<i32>(record + HEAD_SCOPE, listener ? scope : -1)
  return scope
}

/** Route of the folded host, noted in the record: its id or NO_ROUTE. */
function selectRoute(table: Table, scope: i32, record: usize): i32 {
  const id = findRoute(table, <u32>scope, record)
  store<i32>(record + HEAD_SCOPE, scope)
  store<i32>(record + HEAD_ROUTE, id >= 0 ? id : -1)
  return id
}

/** The scope of the request's listener, written to HEAD_SCOPE too; NO_LISTENER or ERROR_ARGUMENT. */
export function matchListener(handle: i32, record: usize): i32 {
  const table = tableOf(handle)
  if (!table || !isSane(record)) return fail(ERROR_ARGUMENT)
  foldHost(record)
  return selectListener(table, record)
}

/** The id of the request's route in a scope, written to HEAD_ROUTE too; NO_ROUTE or ERROR_ARGUMENT. */
export function matchRoute(handle: i32, scope: i32, record: usize): i32 {
  const table = tableOf(handle)
  if (!table || scope < 0 || !isSane(record)) return fail(ERROR_ARGUMENT)
  foldHost(record)
  return selectRoute(table, scope, record)
}

/** Listener, then route: the id, NO_LISTENER, NO_ROUTE or ERROR_ARGUMENT. */
export function matchRequest(handle: i32, record: usize): i32 {
  const table = tableOf(handle)
  if (!table || !isSane(record)) return fail(ERROR_ARGUMENT)
  foldHost(record)
  store<i32>(record + HEAD_ROUTE, -1)
  const scope = selectListener(table, record)
  return scope < 0 ? scope : selectRoute(table, scope, record)
}
