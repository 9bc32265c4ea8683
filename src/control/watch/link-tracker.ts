import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { SetMap } from '../../ground/base/set-map.ts'
import { isLink } from './file-tree.ts'

/** Maximum number of links that a path may lead through, as in the system (ELOOP). */
const maxLinks = 40

/**
 * Tracks files and folders that are reached through links. If such a link or its target changes, only a watch
 * on the folder that contains it notices the change.
 */
export class LinkTracker {
  readonly #linksOf = new Map<string, readonly string[]>()
  readonly #usersOf = new SetMap<string, string>()
  /** Paths by the folder that contains one of their links or their target. */
  readonly #usersIn = new SetMap<string, string>()

  /** Reads the links of a path; for a root, also those above it. Returns whether they changed. */
  note(path: string, isRoot: boolean): boolean {
    const links = isRoot || isLink(path) ? linksOf(path) : []
    const before = this.#linksOf.get(path) ?? []
    if (links.join('\0') === before.join('\0')) return false
    for (const link of before) {
      this.#usersOf.delete(link, path)
      this.#usersIn.delete(dirname(link), path)
    }
    for (const link of links) {
      this.#usersOf.add(link, path)
      this.#usersIn.add(dirname(link), path)
    }
    if (links.length === 0) this.#linksOf.delete(path)
    else this.#linksOf.set(path, links)
    return true
  }

  /** The paths that lead through this link, or to this target. */
  usersOf(link: string): ReadonlySet<string> {
    return this.#usersOf.get(link)
  }

  /** The paths that lead through a link in this folder, or to a target in it. */
  usersIn(folder: string): ReadonlySet<string> {
    return this.#usersIn.get(folder)
  }

  /** The folders of all links and targets. */
  folders(): Iterable<string> {
    return this.#usersIn.keys()
  }
}

/**
 * Returns the links that a path leads through, in order, and then its target, which may be missing. Returns
 * an empty list if there is no link.
 */
function linksOf(path: string): string[] {
  const links: string[] = []
  const steps = resolve(path).split(sep)
  let at: string = sep
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
    if (step === '' || step === '.') continue
    const next = step === '..' ? dirname(at) : join(at, step)
    const found = inspect(next)
    if (found === 'missing') return links.length === 0 ? [] : [...links, next]
    if (found === 'other') {
      at = next
      continue
    }
    links.push(next)
    if (links.length > maxLinks) return links
    if (found.target.startsWith(sep)) at = sep
    steps.unshift(...found.target.split(sep))
  }
  return links.length === 0 ? [] : [...links, at]
}

function inspect(path: string): 'missing' | 'other' | { readonly target: string } {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return 'missing'
    return found.isSymbolicLink() ? { target: readlinkSync(path) } : 'other'
  } catch {
    // The path cannot be read, or has just been removed.
    return 'missing'
  }
}
