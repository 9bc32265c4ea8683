/** What MCP servers list in a state: items with their versions, and which of them are approved. */
import {
  isApproved,
  type ObservedItem,
  type ObservedList,
  type ObservedLists,
  observedListsInput,
} from '../../ground/model/mcp-lists.ts'
import type { Fold } from '../replay/index.ts'

/** Chooses items; those of all backends, targets and lists if nothing is set. */
export interface ItemFilter {
  /** `namespace/name`, or a name in the namespace `default`. */
  readonly backend?: string
  readonly target?: string
  readonly list?: string
}

export interface ListedItemRow {
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly name: string
  readonly item: ObservedItem
  /** Digest of the approved version; undefined if none is approved. */
  readonly approved: string | undefined
  readonly state: 'approved' | 'changed' | 'new' | 'gone'
}

const inputPrefix = observedListsInput('')

/** The lists of all backends in a state. */
function listsIn({ graph }: Fold): readonly (readonly [string, ObservedLists])[] {
  return [...graph.inputs].flatMap(([name, value]) =>
    name.startsWith(inputPrefix)
      ? [[name.slice(inputPrefix.length), value as ObservedLists] as const]
      : [],
  )
}

export const fullName = (backend: string): string =>
  backend.includes('/') ? backend : `default/${backend}`

export function matches(
  { backend, target, list }: ItemFilter,
  one: { readonly backend: string; readonly target: string; readonly list: string },
): boolean {
  if (backend !== undefined && fullName(backend) !== one.backend) return false
  return (target ?? one.target) === one.target && (list ?? one.list) === one.list
}

/** The items of a state, by backend, target, list and the order in which they were first seen. */
export function rowsOf(fold: Fold, filter: ItemFilter): ListedItemRow[] {
  return listsIn(fold).flatMap(([backend, lists]) =>
    lists
      .filter(({ target, list }) => matches(filter, { backend, target, list }))
      .flatMap((list) =>
        Array.from(list.items, ([name, item]) => ({
          backend,
          target: list.target,
          list: list.list,
          name,
          item,
          approved: list.approved.get(name),
          state: stateOf(list, name, item),
        })),
      ),
  )
}

function stateOf(list: ObservedList, name: string, item: ObservedItem): ListedItemRow['state'] {
  if (item.isGone === true) return 'gone'
  if (isApproved(list, name, item)) return 'approved'
  return list.approved.has(name) ? 'changed' : 'new'
}
