/** The names of tools and prompts of a backend for clients, and where they lead. */
import type { McpList } from '../../../../../ground/model/mcp-lists.ts'
import { now } from '../../../../proxy/upstream/endpoint.ts'
import { NameTable } from '../../name-table.ts'
import { clientName, mayBeShortened, targetOfName, targetOfUri } from '../../naming.ts'
import { seenList, versionOfNames } from './target-lists.ts'
import { type McpBackend, type McpTargetEntry, pinKey } from './targets.ts'

type NamedList = Extract<McpList, 'tools' | 'prompts'>

/** An item, by the name that its server uses. */
export interface FoundItem {
  readonly entry: McpTargetEntry
  readonly name: string
}

interface KeptTable {
  readonly table: NameTable
  readonly version: number
  /** Monotonic time until which the table is right. */
  readonly until: number
}

const keptTables = new WeakMap<McpBackend, Map<NamedList, KeptTable>>()

/** `backend` is the whole backend, so that a name means the same at all of its virtual servers. */
export class ItemNames {
  readonly #backend: McpBackend
  readonly #list: NamedList

  constructor(backend: McpBackend, list: NamedList) {
    this.#backend = backend
    this.#list = list
  }

  get #isSingle(): boolean {
    return this.#backend.targets.length === 1
  }

  /** Returns the name for clients; undefined if the item is hidden. */
  clientName(entry: McpTargetEntry, name: string): string | undefined {
    const alias = this.#aliasOf(entry, name)
    if (alias === undefined || this.#isSingle) return alias
    if (this.#isAlways) return clientName(entry.target.name, alias)
    return this.#table.clientName(entry.target.name, alias)
  }

  /** Whether the lists of these targets must be known to say where the name leads. */
  unknownFor(called: string): readonly McpTargetEntry[] {
    if (this.#isSingle || (this.#isAlways && !mayBeShortened(called))) return []
    if (this.#table.isClear(called)) return []
    return this.#backend.targets.filter((entry) => !this.#isKnown(entry))
  }

  /** Finds the item with this name for clients; `clash` if several targets have it. */
  locate(called: string): FoundItem | 'clash' | undefined {
    const [only] = this.#backend.targets
    if (this.#isSingle && only !== undefined) return this.#at(only, called)
    const isWhole = this.#isAlways && !mayBeShortened(called)
    const found = isWhole ? targetOfName(called) : this.#table.locate(called)
    if (found === undefined || found === 'clash') return found
    const entry = this.#backend.targets.find(({ target }) => target.name === found.target)
    return entry && this.#at(entry, found.name)
  }

  #at(entry: McpTargetEntry, alias: string): FoundItem | undefined {
    const { tools } = entry
    const name = tools === undefined || this.#list !== 'tools' ? alias : tools.nameOf(alias)
    return name === undefined ? undefined : { entry, name }
  }

  #aliasOf({ tools }: McpTargetEntry, name: string): string | undefined {
    return tools === undefined || this.#list !== 'tools' ? name : tools.aliasOf(name)
  }

  get #isAlways(): boolean {
    return this.#backend.prefixMode === 'Always'
  }

  #key({ target }: McpTargetEntry): string {
    return pinKey({ target: target.name, list: this.#list })
  }

  #isKnown(entry: McpTargetEntry): boolean {
    return seenList(entry, this.#list).isWhole || this.#backend.names.has(this.#key(entry))
  }

  get #table(): NameTable {
    const all = keptTables.get(this.#backend) ?? new Map<NamedList, KeptTable>()
    keptTables.set(this.#backend, all)
    const kept = all.get(this.#list)
    const version = versionOfNames()
    if (kept !== undefined && kept.version === version && now() < kept.until) return kept.table
    let until = Number.POSITIVE_INFINITY
    const targets = this.#backend.targets.map((entry) => ({
      target: entry.target.name,
      names: this.#namesOf(entry, (at) => {
        until = Math.min(until, at)
      }).flatMap((name) => this.#aliasOf(entry, name) ?? []),
    }))
    const table = new NameTable(this.#backend.prefixMode, targets)
    all.set(this.#list, { table, version, until })
    return table
  }

  /** The server's own names, as this thread has seen them, and the log if the thread has not seen the whole list. */
  #namesOf(entry: McpTargetEntry, onGone: (until: number) => void): readonly string[] {
    const seen = seenList(entry, this.#list)
    const key = this.#key(entry)
    const logged = seen.isWhole ? [] : (this.#backend.names.get(key) ?? [])
    const names = [...new Set([...seen.names(onGone), ...logged])]
    // Withheld items must not take a name from another target.
    const pins = this.#backend.pins.get(key)
    return pins === undefined ? names : names.filter((name) => pins.has(name))
  }
}

/** Finds the resource with this URI for clients. */
export function locateUri({ targets }: McpBackend, called: string): FoundItem | undefined {
  const [only] = targets
  if (targets.length === 1 && only !== undefined) return { entry: only, name: called }
  const parts = targetOfUri(called)
  const entry = parts && targets.find(({ target }) => target.name === parts.target)
  return entry && parts && { entry, name: parts.name }
}
