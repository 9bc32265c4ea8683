/**
 * Names of tools and prompts for clients of several targets, by `prefixMode`:
 *
 *   Always       target_name
 *   Conditional  name, if one target has it; target_name, if several have, or if it begins like target_name
 *   Never        name, of the first target in the order of the backend that has it
 */
import type { McpPrefixMode } from '../../../ground/model/mcp-targets.ts'
import { clientName, mayBeShortened, targetOfName } from './naming.ts'

/** A target and the names that it has, which are those for clients without a prefix. */
interface TargetNames {
  readonly target: string
  readonly names: Iterable<string>
}

/** The item that a client's name stands for; `clash` if several targets have the name. */
type Located = { readonly target: string; readonly name: string } | 'clash' | undefined

export class NameTable {
  readonly #mode: McpPrefixMode
  readonly #targets: ReadonlySet<string>
  /** The targets that have a name, in the order of the backend. Empty in mode Always. */
  readonly #owners = new Map<string, string[]>()
  readonly #shortened = new Map<string, { readonly target: string; readonly name: string }>()

  constructor(mode: McpPrefixMode, targets: readonly TargetNames[]) {
    this.#mode = mode
    this.#targets = new Set(targets.map(({ target }) => target))
    for (const { target, names } of targets) {
      for (const name of names) this.#add(target, name)
    }
  }

  #add(target: string, name: string): void {
    const prefixed = clientName(target, name)
    if (mayBeShortened(prefixed)) this.#shortened.set(prefixed, { target, name })
    if (this.#mode === 'Always') return
    const owners = this.#owners.get(name)
    if (owners === undefined) this.#owners.set(name, [target])
    else if (!owners.includes(target)) owners.push(target)
  }

  /** Returns the name for clients; undefined if another target has it. */
  clientName(target: string, name: string): string | undefined {
    const [first = target, ...others] = this.#owners.get(name) ?? []
    switch (this.#mode) {
      case 'Always':
        return clientName(target, name)
      case 'Conditional':
        return others.length > 0 || first !== target || this.#targetOf(name) !== undefined
          ? clientName(target, name)
          : name
      case 'Never':
        return first === target ? name : undefined
    }
  }

  /** Reverses `clientName`. */
  locate(called: string): Located {
    const prefixed = this.#mode === 'Never' ? undefined : this.#targetOf(called)
    if (prefixed !== undefined) return this.#shortened.get(called) ?? prefixed
    const [first, ...others] = this.#owners.get(called) ?? []
    if (first === undefined) return undefined
    return this.#mode === 'Conditional' && others.length > 0
      ? 'clash'
      : { target: first, name: called }
  }

  /** Whether the name alone determines its target. */
  isClear(called: string): boolean {
    if (this.#mode === 'Never' || mayBeShortened(called)) return false
    return this.#mode === 'Always' || this.#targetOf(called) !== undefined
  }

  /** Names that several targets have, with those targets. */
  *clashes(): Iterable<readonly [name: string, targets: readonly string[]]> {
    for (const one of this.#owners) if (one[1].length > 1) yield one
  }

  /** Reads a name that begins with a target of the backend. */
  #targetOf(name: string) {
    const parts = targetOfName(name)
    if (parts !== undefined && this.#targets.has(parts.target)) return parts
    // The name of the target itself may have been cut.
    return this.#shortened.get(name)
  }
}
