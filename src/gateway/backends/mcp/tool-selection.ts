/** Which tools of a target clients get, and how they are presented (`tools` of a target). */
import type { McpToolOverride, McpToolSelection } from '../../../ground/model/mcp-targets.ts'
import { isSelected } from './patterns.ts'

export class ToolSelection {
  readonly #selection: McpToolSelection
  readonly #byName: ReadonlyMap<string, McpToolOverride>
  /** The server's own names by names for clients. */
  readonly #byAlias: ReadonlyMap<string, string>

  constructor(selection: McpToolSelection) {
    this.#selection = selection
    this.#byName = new Map(selection.overrides.map((one) => [one.name, one]))
    this.#byAlias = new Map(
      selection.overrides.flatMap(({ name, as }) => (as === undefined ? [] : [[as, name]])),
    )
  }

  overrideOf(name: string): McpToolOverride | undefined {
    return this.#byName.get(name)
  }

  /** Returns the name for clients, before a prefix is added; undefined if the tool is hidden. */
  aliasOf(name: string): string | undefined {
    if (!isSelected(this.#selection, name)) return undefined
    const alias = this.#byName.get(name)?.as
    if (alias !== undefined) return alias
    // Another tool has this name for clients.
    return this.#byAlias.has(name) ? undefined : name
  }

  /** Reverses `aliasOf`. Returns undefined for hidden tools, and for names of tools that have others for clients. */
  nameOf(alias: string): string | undefined {
    const name = this.#byAlias.get(alias) ?? alias
    return this.aliasOf(name) === alias ? name : undefined
  }
}
