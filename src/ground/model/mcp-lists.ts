/** What MCP servers list (tools, prompts, resources), as proxies report it and as the log remembers it. */

/** Members of results that are lists, which also name the lists in events. */
export const mcpLists = ['tools', 'prompts', 'resources', 'resourceTemplates', 'agents'] as const
export type McpList = (typeof mcpLists)[number]

/** `Block` also withholds items that are not approved from clients. */
export type Pinning = 'Off' | 'Warn' | 'Block'

/** A version of an item. */
export interface ListedItem {
  /** Name, URI or URI template. */
  readonly name: string
  /** SHA-256 of the canonical definition, in hex. */
  readonly digest: string
  /** Canonical JSON without `_meta` and `icons`; omitted if it is longer than `maxDefinitionLength`. */
  readonly definition?: string
}

/** What a proxy has seen of one list of a target. */
export interface ListReport {
  /** Namespace and name of the backend, with a slash. */
  readonly backend: string
  readonly target: string
  readonly list: McpList
  readonly pinning: Pinning
  /** Items that the proxy has not reported yet. */
  readonly items: readonly ListedItem[]
  /** Names of items that are no longer listed. */
  readonly removed: readonly string[]
  /** Whether `items` are all that the server lists. */
  readonly isComplete: boolean
  /** Whether the proxy reads the list for the first time. */
  readonly isFirst: boolean
  /** Whether no report of the same reading follows. */
  readonly isLast: boolean
}

export type ReportList = (report: ListReport) => void

/** Maximum length of a definition in reports and events. Digests cover definitions of any length. */
export const maxDefinitionLength = 32_768
/** Maximum number of items of a list that are watched. With `Block`, no client gets others. */
export const maxListedItems = 5_000
/** Maximum length of the name of an item that is watched. */
export const maxItemName = 2_048

/** An item in the state that is folded from events. */
export interface ObservedItem extends Omit<ListedItem, 'name'> {
  /** Time of the event since which the server lists this version, or no longer lists the item. */
  readonly since: string
  /** Time of the first event with the item. */
  readonly firstSeen: string
  readonly isGone?: true
  /** Digests of earlier versions, at most `maxVersions`; the newest comes last. */
  readonly earlier: readonly string[]
  /** How often the server has gone back to an earlier version, or has listed the item again. */
  readonly returns: number
}

export const maxVersions = 8
/** From this number of returns on, an item varies among clients, and only new versions of it are events. */
export const maxReturns = 3

export interface ObservedList {
  readonly target: string
  readonly list: McpList
  readonly items: ReadonlyMap<string, ObservedItem>
  /** Digest of the approved version by the name of the item. */
  readonly approved: ReadonlyMap<string, string>
}

/** The lists of one backend, in the order in which they were first seen. Values are never modified. */
export type ObservedLists = readonly ObservedList[]

/** The name of the input with the ObservedLists of a backend, `namespace/name`. */
export const observedListsInput = (backend: string): string => `mcp-lists:${backend}`

export const findList = (
  lists: ObservedLists | undefined,
  target: string,
  list: string,
): ObservedList | undefined => lists?.find((one) => one.target === target && one.list === list)

/** Whether the present version of an item is approved, or the item is no longer listed. */
export const isApproved = ({ approved }: ObservedList, name: string, item: ObservedItem): boolean =>
  item.isGone === true || approved.get(name) === item.digest
