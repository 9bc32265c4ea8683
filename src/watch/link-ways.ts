import { lstatSync, readlinkSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { isLink } from './file-tree.ts'

const none: ReadonlySet<string> = new Set()
/** The system follows no more either (ELOOP). */
const mostLinks = 40

/**
 * Files and folders that are reached through links: each link on the way may come to lead elsewhere,
 * and what lies at its end may change. Both are seen only by who watches the folders where they lie.
 */
export class LinkWays {
  readonly #placesOf = new Map<string, readonly string[]>()
  readonly #usersOf = new Map<string, Set<string>>()
  /** By the folder in which a place lies. */
  readonly #usersIn = new Map<string, Set<string>>()

  /** Looks where a path leads now; has that changed? Of a root, links above it count as well. */
  note(path: string, isRoot: boolean): boolean {
    const places = isRoot || isLink(path) ? wayOf(path) : []
    const before = this.#placesOf.get(path) ?? []
    if (places.join('\0') === before.join('\0')) return false
    for (const place of before) {
      remove(this.#usersOf, place, path)
      remove(this.#usersIn, dirname(place), path)
    }
    for (const place of places) {
      add(this.#usersOf, place, path)
      add(this.#usersIn, dirname(place), path)
    }
    if (places.length === 0) this.#placesOf.delete(path)
    else this.#placesOf.set(path, places)
    return true
  }

  /** The paths that lead through this place, or end there. */
  usersOf(place: string): ReadonlySet<string> {
    return this.#usersOf.get(place) ?? none
  }

  /** The paths that lead through some place in this folder. */
  usersIn(folder: string): ReadonlySet<string> {
    return this.#usersIn.get(folder) ?? none
  }

  /** The folders in which places lie. */
  folders(): Iterable<string> {
    return this.#usersIn.keys()
  }
}

function add(users: Map<string, Set<string>>, place: string, path: string): void {
  users.set(place, (users.get(place) ?? new Set()).add(path))
}

function remove(users: Map<string, Set<string>>, place: string, path: string): void {
  const known = users.get(place)
  known?.delete(path)
  if (known?.size === 0) users.delete(place)
}

/**
 * Each link on the way of a path, in turn, and what it ends at; where it leads nowhere, what is
 * missing there. Empty where there is no link.
 */
function wayOf(path: string): string[] {
  const links: string[] = []
  const steps = resolve(path).split(sep)
  let at: string = sep
  for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
    if (step === '' || step === '.') continue
    const next = step === '..' ? dirname(at) : join(at, step)
    const found = lookAt(next)
    if (found === 'missing') return links.length === 0 ? [] : [...links, next]
    if (found === 'other') {
      at = next
      continue
    }
    links.push(next)
    if (links.length > mostLinks) return links
    if (found.target.startsWith(sep)) at = sep
    steps.unshift(...found.target.split(sep))
  }
  return links.length === 0 ? [] : [...links, at]
}

function lookAt(path: string): 'missing' | 'other' | { readonly target: string } {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found === undefined) return 'missing'
    return found.isSymbolicLink() ? { target: readlinkSync(path) } : 'other'
  } catch {
    // It cannot be looked at, or went in between.
    return 'missing'
  }
}
