/**
 * Reports what servers list, and withholds items whose version is not approved (`pinning: Block`) or in which the guard of
 * definitions has found something (`toolGuard`).
 */
import type { McpItem } from '../../../../../ground/exchange/mcp.ts'
import type { McpList } from '../../../../../ground/model/mcp-lists.ts'
import { member, rawOf, textOf } from '../../json/node.ts'
import type { Keeps } from '../../lists.ts'
import type { McpRequest, McpResponse } from '../../message.ts'
import { type ListMethod, listMethods } from '../../methods.ts'
import type { ToolScan } from '../../policy/tool-scan.ts'
import { itemText, type McpExchange } from '../exchange/mcp-exchange.ts'
import { listOfType } from '../target/outdated-lists.ts'
import { reportsOf, type SeenResponse, seenList, takeResponse } from '../target/target-lists.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { gatewayRequest, type OutgoingRequest, type ReceivedResponse } from '../target/transport.ts'
import { itemFilter } from './item-filter.ts'

/** After this time, a list is asked for again before an item of it is used. */
const freshMs = 60_000
/** Maximum number of pages of a list that the gateway asks for. */
const maxPages = 50

/**
 * Notes a response with a list. Returns a filter for the items that the client may see; undefined if it may see all.
 * `isPage` says that the response is not known to be the whole list.
 */
export function listFilter(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  response: McpResponse,
  isPage: boolean,
): Keeps | undefined {
  const ofRules = itemFilter(exchange, entry, method)
  const seen = takeSeen(exchange, entry, method, response, isPage)
  if (seen === undefined) return ofRules
  const filters = [
    ofRules,
    keepsApproved(exchange, entry, method, seen),
    keepsHarmless(exchange, entry, method, response, seen.digests),
  ].filter((one) => one !== undefined)
  if (filters.length < 2) return filters[0]
  return (name) => filters.every((keeps) => keeps(name))
}

/** As `listFilter`, for the pages of a list that were noted before. */
export function knownFilter(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  pages: readonly McpResponse[],
): Keeps | undefined {
  const ofRules = itemFilter(exchange, entry, method)
  const pins = exchange.pinsOf(entry, method.member)
  const hides = exchange.callPolicyOf(entry)?.scan?.hides === true
  if (pins === undefined && !hides) return ofRules
  const seen = seenList(entry, method.member)
  const digests = { get: (name: string) => seen.digestOf(name) }
  const harmless = pages.map((page) => keepsHarmless(exchange, entry, method, page, digests))
  return (name) => {
    const digest = seen.digestOf(name)
    const isApproved = pins === undefined || digest === pins.get(name)
    // A version that was not noted was not searched either.
    return (
      digest !== undefined &&
      isApproved &&
      ofRules?.(name) !== false &&
      harmless.every((keeps) => keeps?.(name) !== false)
    )
  }
}

function takeSeen(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  response: McpResponse,
  isPage: boolean,
): SeenResponse | undefined {
  const isPinned = exchange.pinsOf(entry, method.member) !== undefined
  const seen = takeResponse(entry, method, response, { isPage, isPinned })
  if (seen !== undefined) report(exchange, entry, method.member, seen)
  return seen
}

function keepsApproved(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  { digests, isFirst }: SeenResponse,
): Keeps | undefined {
  const pins = exchange.pinsOf(entry, method.member)
  // The versions of the first reading are about to be approved.
  if (pins === undefined || isFirst) return undefined
  let isNoted = false
  return (name) => {
    const digest = digests.get(name)
    if (digest !== undefined && digest === pins.get(name)) return true
    if (!isNoted) {
      const item: McpItem = { type: method.type, target: entry.target.name, name }
      const text = `${method.name} withholds items, such as ${itemText(item)}: this version is not approved`
      exchange.noteRefusal(entry, text, false)
    }
    isNoted = true
    return false
  }
}

/** Digests of versions by the names of items. */
type Digests = Pick<SeenResponse['digests'], 'get'>

/** Maximum number of findings of a list that are recorded. */
const maxFindings = 10

function keepsHarmless(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  response: McpResponse,
  digests: Digests,
): Keeps | undefined {
  const scan = exchange.callPolicyOf(entry)?.scan
  if (scan === undefined) return undefined
  const hidden = new Set<string>()
  for (const { name, finding } of findingsIn(scan, method, response, digests)) {
    if (hidden.size < maxFindings && !hidden.has(name)) {
      const item: McpItem = { type: method.type, target: entry.target.name, name }
      const what = scan.hides ? 'hides' : 'lists'
      const text = `${method.name} ${what} ${itemText(item)}, whose definition has a finding: ${finding}`
      exchange.noteRefusal(entry, text, false)
    }
    hidden.add(name)
  }
  if (hidden.size === 0) return undefined
  exchange.noteRefusedBy('toolGuard')
  return scan.hides ? (name) => !hidden.has(name) : undefined
}

function* findingsIn(
  scan: ToolScan,
  method: ListMethod,
  { text, result }: McpResponse,
  digests: Digests,
) {
  for (const node of member(result, method.member)?.values ?? []) {
    const name = textOf(text, member(node, method.key))
    const digest = name === undefined ? undefined : digests.get(name)
    if (name === undefined || digest === undefined) continue
    // Which of several definitions with one name clients use is not known.
    const finding =
      digest === '' ? 'it has several definitions' : scan.search(digest, rawOf(text, node))
    if (finding !== '') yield { name, finding }
  }
}

function report(
  { runtime, name: backend }: McpExchange,
  { target }: McpTargetEntry,
  list: McpList,
  { items, removed, isComplete, isFirst, isLast }: SeenResponse,
): void {
  const hasNews = isFirst || isComplete || items.length + removed.length > 0
  if (runtime.reportList === undefined || !hasNews) return
  const { name, pinning = 'Off' as const } = target
  const whole = {
    backend,
    target: name,
    list,
    pinning,
    items,
    removed,
    isComplete,
    isFirst,
    isLast,
  }
  for (const part of reportsOf(whole)) runtime.reportList(part)
}

/** Digest of the version of an item that the server has listed last; undefined if it was not listed. */
export const versionOf = (entry: McpTargetEntry, { type, name }: McpItem): string | undefined =>
  seenList(entry, listOfType[type]).digestOf(name)

/** Why a client must not use an item. */
export interface Withheld {
  readonly by: 'pinning' | 'toolGuard'
  readonly text: string
}

/** Whether a client may have to use no item of the type, for a reason that `withheldReason` gives. */
export const mayWithhold = (
  exchange: McpExchange,
  entry: McpTargetEntry,
  type: McpItem['type'],
): boolean =>
  exchange.pinsOf(entry, listOfType[type]) !== undefined ||
  exchange.callPolicyOf(entry)?.scan?.hides === true

/**
 * Returns why the client must not use an item that the gateway may withhold; undefined if it may. A list that was not seen for a while is asked
 * for first. Resources that are not listed may be used, since templates name them.
 */
export function withheldReason(
  exchange: McpExchange,
  entry: McpTargetEntry,
  item: McpItem,
  askList: AskList,
): Withheld | undefined | Promise<Withheld | undefined> {
  const list = listOfType[item.type]
  const pins = exchange.pinsOf(entry, list)
  const scan = exchange.callPolicyOf(entry)?.scan
  const hides = scan?.hides === true
  const judge = (): Withheld | undefined => {
    const digest = versionOf(entry, item)
    const finding = hides && digest !== undefined ? scan.known(digest) : undefined
    if (finding) return { by: 'toolGuard', text: `its definition has a finding: ${finding}` }
    if (digest === undefined && item.type === 'resource') return undefined
    if (digest === undefined) {
      return { by: hides ? 'toolGuard' : 'pinning', text: 'the server does not list it' }
    }
    if (pins === undefined || digest === pins.get(item.name)) return undefined
    return { by: 'pinning', text: 'this version is not approved' }
  }
  const digest = versionOf(entry, item)
  const isSearched = !hides || digest === undefined || scan.known(digest) !== undefined
  const asked = isSearched ? refreshList(entry, list, askList) : askOne(list, askList)
  return asked === undefined ? judge() : asked.then(judge)
}

type AskList = (method: ListMethod) => Promise<void>

const askOne = (list: McpList, askList: AskList): Promise<void> | undefined => {
  const method = listMethods.find((one) => one.member === list)
  return method && askList(method)
}

/** Asks for a list that was not seen for a while. */
export const refreshList = (
  entry: McpTargetEntry,
  list: McpList,
  askList: AskList,
): Promise<void> | undefined =>
  seenList(entry, list).isFresh(freshMs) ? undefined : askOne(list, askList)

/** Asks for all pages of a list, for the client whose request needs it. */
export async function askWholeList(
  { text, params }: Pick<McpRequest, 'text' | 'params'>,
  method: ListMethod,
  send: (request: OutgoingRequest) => Promise<ReceivedResponse>,
  take: (response: McpResponse, isPage: boolean) => void,
): Promise<void> {
  const meta = member(params, '_meta')
  const own = meta === undefined ? [] : [`"_meta":${rawOf(text, meta)}`]
  let cursor: string | undefined
  for (let page = 0; page < maxPages; page++) {
    const all = cursor === undefined ? own : [...own, `"cursor":${JSON.stringify(cursor)}`]
    const { response } = await send(gatewayRequest(method.name, `{${all.join(',')}}`))
    take(response, page > 0)
    const next = textOf(response.text, member(response.result, 'nextCursor'))
    if (next === undefined || next === '' || next === cursor) return
    cursor = next
  }
}
