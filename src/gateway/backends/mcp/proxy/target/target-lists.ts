/** What targets list, as this thread has seen it: for reports to the control plane, and to enforce pinning. */

import { canonicalJson } from '../../../../../ground/base/canonical.ts'
import { hexDigest } from '../../../../../ground/base/digest.ts'
import {
  type ListedItem,
  type ListReport,
  type McpList,
  maxDefinitionLength,
  maxItemName,
  maxListedItems,
  maxReturns,
  maxVersions,
} from '../../../../../ground/model/mcp-lists.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import { type JsonNode, jsonValue, member, rawOf, textOf } from '../../json/node.ts'
import type { McpResponse } from '../../message.ts'
import type { ListMethod } from '../../methods.ts'
import { type McpTargetEntry, TargetMemory } from './targets.ts'

/** What a server says about the effects of a tool. */
interface ToolHints {
  readonly isReadOnly: boolean
  readonly isDestructive: boolean
}

/** An item as it was listed last. */
interface SeenItem {
  /** JSON of the item; empty if it is not kept. */
  raw: string
  digest: string
  hints: ToolHints
  isGone: boolean
  /** Monotonic time since which it is gone. */
  goneAt: number
  /** Digests that were reported, the newest last. */
  reported: string[]
  /** How often a version or the item has come back. */
  returns: number
  changes: number
  /** Monotonic time of the last report. */
  reportedAt: number
}

/** Maximum length of the JSON of the items of a list that is kept, so that digests are not computed again. */
const maxKept = 8_388_608
/** Maximum length of all definitions of a list that are reported. */
const maxDefinitions = 4_194_304
/** Definitions in one report have at most this length together, or there is only one. */
const maxReported = 262_144
/** From this number of changes on, an item is reported once in `changeMs`. */
const maxChanges = 20
const changeMs = 60_000
/** The first reading of a list ends after this time, even if the server has more pages. */
const firstMs = 60_000

/**
 * A name that is no longer listed stays that of its target for this time, because servers may list other items for
 * each client.
 */
const goneNameMs = 600_000

/** Counts changes of the names in all lists. */
let namesVersion = 0

/** Changes when a list has other names. */
export const versionOfNames = (): number => namesVersion

/** The items of one list of a target. */
class SeenList {
  readonly #items = new Map<string, SeenItem>()
  #kept = 0
  #defined = 0
  /** Monotonic time of the last response; undefined if the list may have changed since. */
  #seenAt: number | undefined
  /** Monotonic time at which the first reading has begun, or ends if its last page does not come. */
  #firstUntil: number | undefined
  /** Whether all pages of the list were seen. */
  isWhole = false

  /** Names of the items that the target has. `onGone` gets the time at which a name may no longer count. */
  names(onGone: (until: number) => void): string[] {
    const at = now()
    return [...this.#items].flatMap(([name, { isGone, goneAt }]) => {
      if (!isGone) return [name]
      const until = goneAt + goneNameMs
      if (until <= at) return []
      onGone(until)
      return [name]
    })
  }

  /** Digest of the version that was listed last; undefined if the item is not listed. */
  digestOf(name: string): string | undefined {
    const item = this.#items.get(name)
    return item?.isGone === false ? item.digest : undefined
  }

  /** What the server says about a tool; undefined if it is not listed. */
  hintsOf(name: string): ToolHints | undefined {
    const item = this.#items.get(name)
    return item?.isGone === false ? item.hints : undefined
  }

  /** Whether the list was seen in the last `ms`, and the server has reported no change. */
  isFresh(ms: number): boolean {
    return this.#seenAt !== undefined && now() - this.#seenAt < ms
  }

  outdate(): void {
    this.#seenAt = undefined
  }

  /** Whether this is the first reading of the list. `isPinned` says that versions were approved before it began. */
  isFirst(isPinned: boolean): boolean {
    this.#firstUntil ??= isPinned ? 0 : now() + firstMs
    return now() < this.#firstUntil
  }

  /** Called at the last page of a reading. */
  endFirst(): void {
    this.#firstUntil = 0
    if (!this.isWhole) namesVersion++
    this.isWhole = true
  }

  /** Takes the items of a response. `isWhole` says that the server lists no others. */
  take(
    all: readonly SeenNode[],
    isWhole: boolean,
  ): Pick<ListReport, 'items' | 'removed' | 'isComplete'> {
    this.#seenAt = now()
    const isComplete = isWhole && this.#items.size === 0
    const items = all.flatMap((one) => this.#note(one) ?? [])
    if (!isWhole) return { items, removed: [], isComplete }
    const names = new Set(all.map(({ name }) => name))
    const removed = [...this.#items].flatMap(([name, item]) => leave(name, item, names))
    if (removed.length > 0) namesVersion++
    return { items, removed, isComplete }
  }

  /** The digest of an item. The JSON of most items is the same as before. */
  digest(name: string, text: string, node: JsonNode): Pick<SeenNode, 'digest' | 'definition'> {
    const before = this.#items.get(name)
    if (before !== undefined && before.raw === rawOf(text, node)) return { digest: before.digest }
    const { _meta, icons, ...pinned } = jsonValue(text, node) as Record<string, unknown>
    const definition = canonicalJson(pinned)
    return { digest: hexDigest('sha256', definition), definition }
  }

  /** Returns what to report of an item. */
  #note({ name, raw, digest, definition, hints }: SeenNode): ListedItem | undefined {
    const before = this.#items.get(name)
    const item = before ?? newItem(digest, hints)
    if (before === undefined) {
      if (this.#items.size >= maxListedItems) return undefined
      this.#items.set(name, item)
    }
    this.#keep(item, raw)
    if (before === undefined || item.isGone) namesVersion++
    const isSame = item.digest === digest && !item.isGone
    Object.assign(item, { digest, hints, isGone: false })
    if (isSame && item.reported.at(-1) === digest) return undefined
    if (!this.#isDue(item, isSame)) return undefined
    return { name, digest, ...this.#definition(definition) }
  }

  #keep(item: SeenItem, raw: string): void {
    this.#kept -= item.raw.length
    item.raw = this.#kept + raw.length > maxKept ? '' : raw
    this.#kept += item.raw.length
  }

  /** Whether a changed item is to be reported. Servers that change with each response are not, each time. */
  #isDue(item: SeenItem, isSame: boolean): boolean {
    const { digest, reported } = item
    const isReturn = reported.includes(digest)
    if (isReturn && !isSame) item.returns++
    if (isReturn && item.returns > maxReturns) return false
    if (item.changes >= maxChanges && now() - item.reportedAt < changeMs) return false
    item.changes++
    item.reportedAt = now()
    item.reported = [...reported.filter((one) => one !== digest), digest].slice(-maxVersions)
    return true
  }

  #definition(definition: string | undefined): Pick<ListedItem, 'definition'> {
    if (definition === undefined || definition.length > maxDefinitionLength) return {}
    if (this.#defined + definition.length > maxDefinitions) return {}
    this.#defined += definition.length
    return { definition }
  }
}

const newItem = (digest: string, hints: ToolHints): SeenItem => ({
  raw: '',
  digest,
  hints,
  isGone: false,
  goneAt: 0,
  reported: [],
  returns: 0,
  changes: 0,
  reportedAt: 0,
})

/** An item of a response. */
interface SeenNode extends ListedItem {
  readonly raw: string
  readonly hints: ToolHints
}

function hintsIn(text: string, node: JsonNode): ToolHints {
  const annotations = member(node, 'annotations')
  const isTrue = (name: string) => {
    const value = member(annotations, name)
    return value !== undefined && rawOf(text, value) === 'true'
  }
  return { isReadOnly: isTrue('readOnlyHint'), isDestructive: isTrue('destructiveHint') }
}

/** Returns the name of an item that the server no longer lists, if that is to be reported. */
function leave(name: string, item: SeenItem, names: ReadonlySet<string>): readonly string[] {
  // Servers that list other items for each client would be reported with each list.
  if (item.isGone || names.has(name) || item.returns >= maxReturns) return []
  item.isGone = true
  item.goneAt = now()
  return [name]
}

const known = new TargetMemory(() => new Map<McpList, SeenList>())

/** The list of a target, which may not have been seen yet. */
export function seenList(entry: McpTargetEntry, list: McpList): SeenList {
  const lists = known.of(entry)
  const found = lists.get(list) ?? new SeenList()
  lists.set(list, found)
  return found
}

/** What a response lists. */
export interface SeenResponse
  extends Pick<ListReport, 'items' | 'removed' | 'isComplete' | 'isFirst' | 'isLast'> {
  /** Digests of the items by name; empty if different items have the name. */
  readonly digests: ReadonlyMap<string, string>
}

/** Reads the items of a response; undefined if it has no such list. */
export function takeResponse(
  entry: McpTargetEntry,
  method: ListMethod,
  { text, result }: McpResponse,
  { isPage, isPinned }: { readonly isPage: boolean; readonly isPinned: boolean },
): SeenResponse | undefined {
  const nodes = member(result, method.member)?.values
  if (nodes === undefined) return undefined
  const seen = seenList(entry, method.member)
  const all = new Map<string, SeenNode>()
  const digests = new Map<string, string>()
  for (const node of nodes) {
    const name = textOf(text, member(node, method.key))
    if (name === undefined || name.length > maxItemName || all.size >= maxListedItems) continue
    const own = { raw: rawOf(text, node), hints: hintsIn(text, node) }
    const one = { name, ...own, ...seen.digest(name, text, node) }
    const isOther = all.has(name) && digests.get(name) !== one.digest
    digests.set(name, isOther ? '' : one.digest)
    all.set(name, one)
  }
  const isLast = member(result, 'nextCursor') === undefined
  const isFirst = seen.isFirst(isPinned)
  if (isLast) seen.endFirst()
  return { digests, isFirst, isLast, ...seen.take([...all.values()], isLast && !isPage) }
}

/** Splits a report, because a message to the control plane has a limited size. */
export function reportsOf(whole: ListReport): readonly ListReport[] {
  const parts: ListedItem[][] = [[]]
  let length = 0
  for (const item of whole.items) {
    length += item.name.length + (item.definition?.length ?? 0)
    if (length > maxReported && parts.at(-1)?.length !== 0) {
      parts.push([])
      length = 0
    }
    parts.at(-1)?.push(item)
  }
  return parts.map((items, at) => ({
    ...whole,
    items,
    removed: at === 0 ? whole.removed : [],
    isComplete: whole.isComplete && parts.length === 1,
    isLast: whole.isLast && at === parts.length - 1,
  }))
}
