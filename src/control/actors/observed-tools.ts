/** What MCP servers list, as proxies have reported it, and which versions are approved. Backends read it as inputs. */
import type { SluiceEvent, ToolsApprovedData, ToolsObservedData } from '../../../events/index.ts'
import {
  findList,
  type McpList,
  maxListedItems,
  maxVersions,
  mcpLists,
  type ObservedItem,
  type ObservedList,
  type ObservedLists,
  observedListsInput,
} from '../../ground/model/mcp-lists.ts'
import type { Graph } from '../desired/graph.ts'

/** A list in a snapshot. */
export interface StoredList {
  readonly backend: string
  readonly target: string
  readonly list: McpList
  readonly items: readonly (readonly [name: string, item: ObservedItem])[]
  readonly approved: readonly (readonly [name: string, digest: string])[]
}

/** A list while it is being changed. */
interface ChangedList extends ObservedList {
  readonly items: Map<string, ObservedItem>
  readonly approved: Map<string, string>
}

export class ObservedTools {
  readonly #graph: Graph
  readonly #lists = new Map<string, ObservedLists>()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** Returns whether a list has changed. */
  apply({ type, data, time }: SluiceEvent): boolean {
    if (type === 'dev.sluice.tools.observed.v1') {
      return this.#change(data, (list) => observe(list, data, time))
    }
    if (type === 'dev.sluice.tools.approved.v1') {
      return this.#change(data, (list) => approve(list, data))
    }
    return false
  }

  snapshot(): { readonly observedLists?: readonly StoredList[] } {
    const observedLists = [...this.#lists].flatMap(([backend, lists]) =>
      lists.map(({ target, list, items, approved }): StoredList => {
        return { backend, target, list, items: [...items], approved: [...approved] }
      }),
    )
    return observedLists.length === 0 ? {} : { observedLists }
  }

  restore(stored: readonly StoredList[] = []): void {
    for (const backend of [...this.#lists.keys()]) this.#set(backend, [])
    for (const { backend, target, list, items, approved } of stored) {
      const restored = { target, list, items: new Map(items), approved: new Map(approved) }
      this.#set(backend, [...(this.#lists.get(backend) ?? []), restored])
    }
  }

  #change(
    { backend, target, list }: Pick<ToolsObservedData, 'backend' | 'target' | 'list'>,
    change: (list: ChangedList) => boolean,
  ): boolean {
    if (!isList(list)) return false
    const lists = this.#lists.get(backend) ?? []
    const before = findList(lists, target, list)
    const after = {
      target,
      list,
      items: new Map(before?.items),
      approved: new Map(before?.approved),
    }
    if (!change(after) && before !== undefined) return false
    const others = lists.map((one) => (one === before ? after : one))
    this.#set(backend, before === undefined ? [...lists, after] : others)
    return true
  }

  #set(backend: string, lists: ObservedLists): void {
    if (lists.length === 0) this.#lists.delete(backend)
    else this.#lists.set(backend, lists)
    this.#graph.setInput(observedListsInput(backend), lists.length === 0 ? undefined : lists)
  }
}

const isList = (list: string): list is McpList => mcpLists.some((one) => one === list)

/** Returns whether the list has changed. */
function observe(
  { items, approved }: ChangedList,
  { items: seen, removed, isApproved }: ToolsObservedData,
  time: string,
): boolean {
  let hasChanged = false
  for (const { name, digest, definition } of seen) {
    const before = items.get(name)
    if (isApproved && approved.get(name) !== digest) {
      approved.set(name, digest)
      hasChanged = true
    }
    if (before?.digest === digest && before.isGone !== true) continue
    if (before === undefined && items.size >= maxListedItems && !dropGone(items)) continue
    items.set(name, {
      digest,
      ...(definition !== undefined && { definition }),
      since: time,
      firstSeen: before?.firstSeen ?? time,
      ...historyOf(before, digest),
    })
    hasChanged = true
  }
  for (const name of removed) {
    const before = items.get(name)
    if (before === undefined || before.isGone === true) continue
    items.set(name, { ...before, isGone: true, since: time })
    hasChanged = true
  }
  return hasChanged
}

function historyOf(
  before: ObservedItem | undefined,
  digest: string,
): Pick<ObservedItem, 'earlier' | 'returns'> {
  if (before === undefined) return { earlier: [], returns: 0 }
  const isReturn = before.digest === digest || before.earlier.includes(digest)
  const others = [...before.earlier, before.digest].filter((one) => one !== digest)
  return { earlier: others.slice(-maxVersions), returns: before.returns + (isReturn ? 1 : 0) }
}

/** Makes room for an item. Returns false if all items are listed. */
function dropGone(items: Map<string, ObservedItem>): boolean {
  for (const [name, { isGone }] of items) if (isGone === true) return items.delete(name)
  return false
}

/** Returns whether an approval has changed. */
function approve({ approved }: ChangedList, { items }: ToolsApprovedData): boolean {
  let hasChanged = false
  for (const [name, digest] of Object.entries(items)) {
    if ((approved.get(name) ?? null) === digest) continue
    if (digest === null) approved.delete(name)
    else approved.set(name, digest)
    hasChanged = true
  }
  return hasChanged
}
