/** Reports what servers list, and withholds items whose version is not approved (`pinning: Block`). */
import type { McpItem, McpItemType } from '../../../../../ground/exchange/mcp.ts'
import type { McpList } from '../../../../../ground/model/mcp-lists.ts'
import { member, rawOf, textOf } from '../../json/node.ts'
import type { Keeps } from '../../lists.ts'
import type { McpRequest, McpResponse } from '../../message.ts'
import { type ListMethod, listMethods } from '../../methods.ts'
import { itemText, type McpExchange } from '../exchange/mcp-exchange.ts'
import { reportsOf, type SeenResponse, seenList, takeResponse } from '../target/target-lists.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import { gatewayRequest, type OutgoingRequest, type ReceivedResponse } from '../target/transport.ts'
import { itemFilter } from './item-filter.ts'

/** After this time, a list is asked for again before an item of it is used. */
const freshMs = 60_000
/** Maximum number of pages of a list that the gateway asks for. */
const maxPages = 50

const listOf: Readonly<Record<McpItemType, McpList>> = {
  tool: 'tools',
  prompt: 'prompts',
  resource: 'resources',
}

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
  const ofPins = observe(exchange, entry, method, response, isPage)
  if (ofRules === undefined || ofPins === undefined) return ofRules ?? ofPins
  return (name) => ofPins(name) && ofRules(name)
}

function observe(
  exchange: McpExchange,
  entry: McpTargetEntry,
  method: ListMethod,
  response: McpResponse,
  isPage: boolean,
): Keeps | undefined {
  const pins = exchange.pinsOf(entry, method.member)
  const seen = takeResponse(entry, method, response, { isPage, isPinned: pins !== undefined })
  if (seen === undefined) return undefined
  report(exchange, entry, method.member, seen)
  // The versions of the first reading are about to be approved.
  if (pins === undefined || seen.isFirst) return undefined
  let isNoted = false
  return (name) => {
    const digest = seen.digests.get(name)
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

/** Called if a server says that one of its lists has changed. */
export function outdateLists(entry: McpTargetEntry, notification: string): void {
  for (const { type, member: list } of listMethods) {
    if (notification === `notifications/${listOf[type]}/list_changed`)
      seenList(entry, list).outdate()
  }
}

/** Digest of the version of an item that the server has listed last; undefined if it was not listed. */
export const versionOf = (entry: McpTargetEntry, { type, name }: McpItem): string | undefined =>
  seenList(entry, listOf[type]).digestOf(name)

/**
 * Returns why the client must not use an item; undefined if it may. A list that was not seen for a while is asked
 * for first. Resources that are not listed may be used, since templates name them.
 */
export function pinRefusal(
  exchange: McpExchange,
  entry: McpTargetEntry,
  item: McpItem,
  askList: (method: ListMethod) => Promise<void>,
): string | undefined | Promise<string | undefined> {
  const list = listOf[item.type]
  const pins = exchange.pinsOf(entry, list)
  if (pins === undefined) return undefined
  const judge = () => {
    const digest = versionOf(entry, item)
    if (digest === undefined && item.type === 'resource') return undefined
    if (digest === undefined) return 'the server does not list it'
    return digest === pins.get(item.name) ? undefined : 'this version is not approved'
  }
  const method = listMethods.find((one) => one.member === list)
  if (method === undefined || seenList(entry, list).isFresh(freshMs)) return judge()
  return askList(method).then(judge)
}

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
