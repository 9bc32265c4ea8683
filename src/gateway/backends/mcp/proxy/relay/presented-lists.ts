/**
 * Lists as clients get them. What is made of cached lists is kept: the items of each target as one text, for each
 * subset that rules leave, and the items of all targets as bytes. Then a response only adds its id and its hints.
 */

import { BoundedMap } from '../../../../../ground/base/bounded-map.ts'
import { bytesOf } from '../../../../../ground/base/buffers.ts'
import { resultText } from '../../json-rpc.ts'
import { type CacheHints, type Keeps, type ListPart, mergedResult, partOf } from '../../lists.ts'
import type { McpRequest, McpResponse } from '../../message.ts'
import type { ListMethod, ProtocolEra } from '../../methods.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import type { ClientBackend } from '../target/client-backend.ts'
import { versionOfNames } from '../target/target-lists.ts'
import type { McpTargetEntry } from '../target/targets.ts'

/** A response with a list, and the items of it that the client may see; all if omitted. */
export interface TargetList {
  readonly entry: McpTargetEntry
  /** Undefined if the server does not support the method. */
  readonly response?: McpResponse
  readonly keeps?: Keeps | undefined
  /** What remains of the cache hints of a cached response. */
  readonly hints?: CacheHints
}

/** A cached list in a view. */
interface KnownList {
  /** Version of the names by which the items are presented. */
  readonly version: number
  /** Names at the server of the items in `part`. */
  readonly names: readonly string[]
  readonly part: ListPart
  /** The items of `part` as one text, by which of them it has. */
  readonly subsets: BoundedMap<string, ListPart>
}

/** Maximum number of subsets of a list that are kept. */
const maxSubsets = 4

const knownLists = new WeakMap<McpResponse, WeakMap<ClientBackend, KnownList>>()

export function partOfTarget(view: ClientBackend, method: ListMethod, list: TargetList): ListPart {
  const { entry, response, keeps, hints } = list
  if (response === undefined) return { target: entry.target.name, items: [], cursor: undefined }
  const isOwn = keeps !== undefined || view.isChanged(entry, method.member)
  const part =
    hints === undefined
      ? partOf(entry.target.name, method, response, view.presenter(entry, method.member, keeps))
      : { ...subsetOf(knownList(view, method, entry, response), keeps), hints }
  return isOwn ? { ...part, hints: part.hints && { ...part.hints, isPublic: false } } : part
}

function knownList(
  view: ClientBackend,
  method: ListMethod,
  entry: McpTargetEntry,
  response: McpResponse,
): KnownList {
  const views = knownLists.get(response) ?? new WeakMap<ClientBackend, KnownList>()
  knownLists.set(response, views)
  const version = versionOfNames()
  const known = views.get(view)
  if (known?.version === version) return known
  const names: string[] = []
  const present = view.presenter(entry, method.member, undefined)
  const part = partOf(entry.target.name, method, response, (name) => {
    const presented = present(name)
    if (presented !== undefined) names.push(name)
    return presented
  })
  const made = { version, names, part, subsets: new BoundedMap<string, ListPart>(maxSubsets) }
  views.set(view, made)
  return made
}

function subsetOf({ names, part, subsets }: KnownList, keeps: Keeps | undefined): ListPart {
  const kept = keeps && names.map((name) => keeps(name))
  const key = kept?.includes(false) ? kept.map(Number).join('') : ''
  const known = subsets.get(key)
  if (known !== undefined) return known
  const items = key === '' ? part.items : part.items.filter((_, at) => kept?.[at])
  const made = { ...part, items: items.length === 0 ? items : [items.join(',')] }
  subsets.set(key, made)
  return made
}

/** The joined items of these lists. */
interface JoinedItems {
  readonly lists: readonly ListPart['items'][]
  readonly bytes: Buffer
}

/** Maximum number of responses that are kept with the same items of their first target. */
const maxJoined = 4

/** By the items of the first target. */
const joined = new WeakMap<ListPart['items'], JoinedItems[]>()

/** Returns the response that joins the parts of all targets. `missing` names the targets that failed. */
export function responseOf(
  { id }: McpRequest,
  method: ListMethod,
  parts: readonly ListPart[],
  missing: readonly string[],
  era: ProtocolEra,
): ClientResponse {
  // Only items of cached lists are one text.
  const isKnown = era === 'modern' && parts.every(({ items }) => items.length < 2)
  if (!isKnown) return { text: resultText(id, mergedResult(method, parts, missing, era)) }
  const rest = parts.map((part) => ({ ...part, items: [] }))
  const text = resultText(id, mergedResult(method, rest, missing, era))
  const start = text.indexOf('[]', resultText(id, '').length - 1) + 1
  return new PartsResponse([
    Buffer.from(text.slice(0, start)),
    joinedItems(parts.map(({ items }) => items).filter(({ length }) => length > 0)),
    Buffer.from(text.slice(start)),
  ])
}

function joinedItems(lists: JoinedItems['lists']): Buffer {
  const [first] = lists
  if (first === undefined) return Buffer.alloc(0)
  const kept = joined.get(first) ?? []
  joined.set(first, kept)
  const isSame = (one: JoinedItems) =>
    one.lists.length === lists.length && one.lists.every((items, at) => items === lists[at])
  const known = kept.find(isSame)
  if (known !== undefined) return known.bytes
  const bytes = Buffer.from(lists.flat().join(','))
  kept.push({ lists, bytes })
  if (kept.length > maxJoined) kept.shift()
  return bytes
}

/** A response whose text is only made if it is sent as an event. */
class PartsResponse implements ClientResponse {
  readonly bytes: readonly Uint8Array[]

  constructor(parts: readonly Uint8Array[]) {
    this.bytes = parts
  }

  get text(): string {
    return bytesOf(this.bytes).toString()
  }
}
