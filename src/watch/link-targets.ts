import { realpathSync } from 'node:fs'
import { dirname } from 'node:path'
import { isLink } from './file-tree.ts'

const none: ReadonlySet<string> = new Set()

/** Files that are links into other folders: an edit there is seen only by who watches there. */
export class LinkTargets {
  readonly #targetOf = new Map<string, string>()
  readonly #linksTo = new Map<string, Set<string>>()

  /** Looks where a file leads now; has that changed? */
  note(file: string): boolean {
    const target = targetOf(file)
    const before = this.#targetOf.get(file)
    if (target === before) return false
    if (before !== undefined) this.#linksTo.get(before)?.delete(file)
    if (target === undefined) this.#targetOf.delete(file)
    else {
      this.#targetOf.set(file, target)
      this.#linksTo.set(target, (this.#linksTo.get(target) ?? new Set()).add(file))
    }
    return true
  }

  /** The files that lead to this path. */
  linksTo(path: string): ReadonlySet<string> {
    return this.#linksTo.get(path) ?? none
  }

  /** The folders in which targets lie. */
  *folders(): Iterable<string> {
    for (const [target, links] of this.#linksTo) if (links.size > 0) yield dirname(target)
  }
}

/** Where a link leads; undefined for what is none, and for one that leads nowhere. */
function targetOf(file: string): string | undefined {
  if (!isLink(file)) return undefined
  try {
    return realpathSync(file)
  } catch {
    return undefined
  }
}
