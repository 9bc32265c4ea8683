/**
 * Finds the format of a request by the ending of its path. A client must not be able to avoid guards by
 * writing the same path differently, so paths are compared in a normal form that covers every way
 * in which a provider may read them.
 */
import { formatOf, type RouteType } from '../../../../engines/messages/formats/index.ts'
import { BoundedMap } from '../../../../ground/base/bounded-map.ts'
import { type ErrorFormName, type KnownPath, keptPathOf, knownPathOf } from './known-paths.ts'
import { collectionOf, type StoredPath, storedPathOf } from './stored-paths.ts'

export type Routes = Readonly<Record<string, RouteType>>

const any = '*'

interface Ending {
  readonly text: string
  readonly type: RouteType
}

/** Endings of plain paths, longest first; among endings of equal length, types that guards inspect come first. */
export function endingsOf(routes: Routes): Ending[] {
  return Object.entries(routes)
    .filter(([text]) => text !== any)
    .map(([text, type]) => ({ text: plainPath(text) ?? text, type }))
    .sort((a, b) => b.text.length - a.text.length || unguardedRank(a) - unguardedRank(b))
}

/** What a path stands for. */
type Found = RouteType | KnownPath | StoredPath

/** Clients repeat few paths, and some of them, such as those with `%3A`, take long to compare. */
const maxKept = 256
const maxKeptLength = 256

/** The compiled endings of one policy. */
export class RouteTypes {
  /** The types of recent paths, without those of things stored, each of which has a path of its own. */
  readonly #kept = new BoundedMap<string, RouteType>(maxKept)
  readonly #endings: readonly Ending[]
  readonly #default: RouteType
  readonly #isMapped: boolean

  constructor(routes: Routes = {}) {
    this.#endings = endingsOf(routes)
    this.#default = routes[any] ?? 'Completions'
    this.#isMapped = Object.keys(routes).length > 0
  }

  /**
   * Returns the type of the longest matching ending, otherwise that of `*`, otherwise Completions. Without `routes`,
   * the paths of vendors have their own types. A path of a vendor's API that no type is mapped to is returned
   * itself, unless requests of the type of all other paths may have any format. So is a path of something stored, if
   * its collection has the type of it. `path` has no query. Returns undefined if providers may read a mapped path
   * differently; the request is rejected.
   */
  find(path: string): Found | undefined {
    const kept = this.#kept.get(path)
    if (kept !== undefined) return kept
    const found = this.#compare(path)
    if (typeof found === 'string' && path.length <= maxKeptLength) this.#kept.set(path, found)
    return found
  }

  #compare(path: string): Found | undefined {
    const plain = plainPath(path)
    if (plain === undefined) return this.#isMapped ? undefined : this.#default
    const within = collectionOf(plain)
    if (within === undefined) return this.#typeOf(plain)
    const type = this.#typeOf(within.path)
    if (type === within.type) return storedPathOf(path) ?? keptPathOf(plain)
    return typeof type === 'object' ? type : this.#typeOf(plain)
  }

  #typeOf(plain: string): RouteType | KnownPath {
    const mapped = this.#endings.find(({ text }) => plain.endsWith(text))?.type
    if (mapped !== undefined) return mapped
    if (unreadTypes.has(this.#default)) return this.#default
    const known = knownPathOf(plain)
    if (known === undefined) return this.#default
    if (known.type === this.#default) return known.type
    return this.#isMapped || !known.isDefault ? known : (known.type ?? known)
  }

  /** Returns the form of errors that clients of a path expect; undefined if it is not known. */
  errorFormOf(path: string): ErrorFormName | undefined {
    const found = this.find(path) ?? 'Completions'
    if (typeof found === 'object') return found.errors
    return formatOf(found)?.errors.name ?? knownPathOf(plainPath(path) ?? '')?.errors
  }
}

/** Route types for providers without an AI policy. */
export const defaultRouteTypes = new RouteTypes()

/** Types whose requests may have any format. */
const unreadTypes: ReadonlySet<RouteType> = new Set(['Passthrough', 'Models', 'Realtime'])

const unguardedRank = ({ type }: Ending): number => (type === 'Passthrough' ? 1 : 0)

/** Paths that every provider reads in the same way. */
const simple = /^(?:\/[a-z0-9_:@~-]+(?:\.[a-z0-9_:@~-]+)*)+$/

/** Maximum number of times that percent-encoding is decoded. */
const maxDecodings = 3

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const control = /[\u0000-\u001f\u007f]/

/**
 * Returns the path in lower case, percent-decoded repeatedly and with `/` for `\`, without parameters
 * (`;a=b`), empty segments, and spaces and dots at the end of segments. Returns undefined if it has a
 * control character or a segment `.` or `..`, which servers treat differently.
 */
function plainPath(path: string): string | undefined {
  if (simple.test(path)) return path
  let text = path
  for (let round = 0; round < maxDecodings && text.includes('%'); round++) {
    text = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
  }
  if (control.test(text)) return undefined
  const [only = ''] = text.split(/[?#]/, 1)
  const segments = only.replaceAll('\\', '/').split('/').map(withoutParameters)
  if (segments.some((segment) => /^\.{1,2} *$/.test(segment))) return undefined
  const plain = segments.map(withoutTail).filter((segment) => segment !== '')
  const isRooted = /^[/\\]/.test(only)
  return `${isRooted ? '/' : ''}${plain.join('/').toLowerCase()}`
}

const withoutParameters = (segment: string): string => segment.split(';', 1)[0] ?? ''

/** Removes dots and spaces at the end, in linear time, unlike a regular expression with `+$`. */
function withoutTail(segment: string): string {
  let end = segment.length
  while (end > 0 && (segment[end - 1] === '.' || segment[end - 1] === ' ')) end--
  return segment.slice(0, end)
}
