/** How clients see a tool or prompt: its name, what hides it, and the virtual servers that have it. */
import { NameTable } from '../../../gateway/backends/mcp/name-table.ts'
import { isSelected } from '../../../gateway/backends/mcp/patterns.ts'
import { ToolSelection } from '../../../gateway/backends/mcp/tool-selection.ts'
import type {
  McpPrefixMode,
  McpTarget,
  McpVirtualServer,
} from '../../../ground/model/mcp-targets.ts'
import type { ListedItemRow } from '../../../past/explain/listed-items.ts'

/** The part of a backend that decides. */
export interface OfferingBackend {
  readonly targets: readonly McpTarget[]
  readonly prefixMode?: McpPrefixMode
  readonly virtualServers?: readonly McpVirtualServer[]
}

export interface ItemOffer {
  /** Undefined if clients cannot see the item. */
  readonly clientName: string | undefined
  /** Why clients cannot see the item by any name. */
  readonly hiddenBy: string | undefined
  /** Other targets of the backend with the same name. */
  readonly clashesWith: readonly string[]
  /** Virtual servers, and whether clients find the item there. */
  readonly servers: readonly { readonly name: string; readonly hasItem: boolean }[]
}

/** Undefined for resources, whose URIs have the name of the target. `rows` has all items that are listed. */
export function offerOf(
  { targets, prefixMode = 'Always', virtualServers = [] }: OfferingBackend,
  row: ListedItemRow,
  rows: readonly ListedItemRow[],
): ItemOffer | undefined {
  const { list, name } = row
  const target = targets.find((one) => one.name === row.target)
  if (target === undefined || (list !== 'tools' && list !== 'prompts')) return undefined
  const aliasOf = (one: McpTarget, own: string) =>
    one.tools === undefined || list !== 'tools' ? own : new ToolSelection(one.tools).aliasOf(own)
  const alias = aliasOf(target, name)
  if (alias === undefined) {
    const hiddenBy = `tools of target ${target.name}`
    return { clientName: undefined, hiddenBy, clashesWith: [], servers: [] }
  }
  const all = targets.map((one) => {
    const own = rows.filter((other) => {
      const isHere = other.backend === row.backend && other.list === list
      return isHere && other.target === one.name && other.state !== 'gone'
    })
    return { target: one.name, names: own.flatMap((other) => aliasOf(one, other.name) ?? []) }
  })
  const owners = all.filter(({ names }) => names.includes(alias)).map((one) => one.target)
  const clashesWith = owners.filter((one) => one !== target.name)
  const table = new NameTable(prefixMode, all)
  const clientName = targets.length === 1 ? alias : table.clientName(target.name, alias)
  const hiddenBy =
    clientName === undefined ? `prefixMode Never: ${owners[0]} has the same name` : undefined
  const servers = virtualServers.map((server) => ({
    name: server.name,
    hasItem:
      clientName !== undefined &&
      (server.targets.length === 0 || server.targets.some((at) => target.sections.includes(at))) &&
      (list !== 'tools' || isSelected(server, clientName)),
  }))
  return { clientName, hiddenBy, clashesWith, servers }
}

/** Lines of text about an offer, without indentation. */
export function offerLines(offer: ItemOffer | undefined): string[] {
  if (offer === undefined) return []
  const { clientName, hiddenBy, clashesWith, servers } = offer
  const others = clashesWith.length === 0 ? '' : `; ${clashesWith.join(', ')} has the same name`
  return [
    clientName === undefined ? `hidden by ${hiddenBy}` : `clients see it as ${clientName}${others}`,
    ...servers.map(
      ({ name, hasItem }) => `virtual server ${name}: ${hasItem ? 'has it' : 'does not have it'}`,
    ),
  ]
}
