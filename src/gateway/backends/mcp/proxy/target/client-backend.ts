/** The part of a backend that one client gets. */
import type { Exchange } from '../../../../../ground/exchange/exchange.ts'
import type { McpItem } from '../../../../../ground/exchange/mcp.ts'
import type { McpList } from '../../../../../ground/model/mcp-lists.ts'
import type { Keeps, Present } from '../../lists.ts'
import { clientUri } from '../../naming.ts'
import { type FoundItem, ItemNames, locateUri } from './item-names.ts'
import type { McpBackend, McpTargetEntry } from './targets.ts'
import { chooseServer, type VirtualServer } from './virtual-server.ts'

const listOf = { tool: 'tools', prompt: 'prompts' } as const

type Chosen = ReturnType<typeof chooseServer> | undefined

/** What clients get, by their virtual server. Undefined is the key without virtual servers. */
const views = new WeakMap<McpBackend, Map<Chosen, ClientBackend>>()

/** Returns what a client gets. Only virtual servers read `path`, that of the request as the client sent it. */
export function clientBackend(whole: McpBackend, path: string, client: Exchange): ClientBackend {
  const chosen = whole.servers.length > 0 ? chooseServer(whole.servers, path, client) : undefined
  let own = views.get(whole)
  if (own === undefined) {
    own = new Map()
    views.set(whole, own)
  }
  let found = own.get(chosen)
  if (found === undefined) {
    found = new ClientBackend(whole, chosen)
    own.set(chosen, found)
  }
  return found
}

export class ClientBackend {
  /** The backend with all of its targets. */
  readonly whole: McpBackend
  /** The backend with the targets of the client's virtual server; `whole` without virtual servers. */
  readonly backend: McpBackend
  /** Whether there is no virtual server for the client. */
  readonly isHidden: boolean
  readonly #server: VirtualServer | undefined
  readonly #names: Readonly<Record<'tools' | 'prompts', ItemNames>>

  constructor(whole: McpBackend, server: VirtualServer | 'none' | undefined) {
    this.whole = whole
    this.isHidden = server === 'none'
    this.#server = server === 'none' ? undefined : server
    this.backend = this.#backendOf(server)
    this.#names = { tools: new ItemNames(whole, 'tools'), prompts: new ItemNames(whole, 'prompts') }
  }

  #backendOf(server: VirtualServer | 'none' | undefined): McpBackend {
    if (server === undefined) return this.whole
    if (server === 'none') return { ...this.whole, targets: [] }
    const targets = this.whole.targets.filter(({ target }) => server.hasTarget(target))
    return { ...this.whole, targets }
  }

  /** Whether the client may not get all items of all targets as they are, apart from rules. */
  isChanged({ tools }: McpTargetEntry, list: McpList): boolean {
    return list === 'tools' && (tools !== undefined || this.#server !== undefined)
  }

  /** Returns the name or URI for the client; undefined if the item is hidden. */
  clientName(entry: McpTargetEntry, list: McpList, name: string): string | undefined {
    if (list !== 'tools' && list !== 'prompts') {
      return this.whole.targets.length === 1 ? name : clientUri(entry.target.name, name)
    }
    const called = this.#names[list].clientName(entry, name)
    return called !== undefined && this.#shows(list, called) ? called : undefined
  }

  /** Returns how the items of a list are presented. `keeps` says which the client may see; if omitted, all. */
  presenter(entry: McpTargetEntry, list: McpList, keeps: Keeps | undefined): Present {
    return (name) => {
      if (keeps?.(name) === false) return undefined
      const called = this.clientName(entry, list, name)
      if (called === undefined) return undefined
      const override = list === 'tools' ? entry.tools?.overrideOf(name) : undefined
      return { name: called, override }
    }
  }

  /** Finds an item by its name or URI for clients; `clash` if several targets have it. */
  locate(type: McpItem['type'], called: string): FoundItem | 'clash' | undefined {
    if (type === 'resource') return this.#visible(locateUri(this.whole, called))
    const list = listOf[type]
    const found = this.#names[list].locate(called)
    if (found === 'clash') return found
    return found && this.#shows(list, called) ? this.#visible(found) : undefined
  }

  /** The targets whose lists must be asked for to know where the name leads. */
  unknownFor(type: McpItem['type'], called: string): readonly McpTargetEntry[] {
    return type === 'resource' ? [] : this.#names[listOf[type]].unknownFor(called)
  }

  #shows(list: McpList, called: string): boolean {
    return list !== 'tools' || this.#server === undefined || this.#server.hasTool(called)
  }

  #visible(found: FoundItem | undefined): FoundItem | undefined {
    return found && this.backend.targets.includes(found.entry) ? found : undefined
  }
}
