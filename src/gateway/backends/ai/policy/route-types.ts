/**
 * Finds the format of a request by the ending of its path. A client must not be able to avoid guards by
 * writing the same path differently, so paths are compared in a normal form that covers every way
 * in which a provider may read them.
 */
import type { RouteType } from '../../../../engines/messages/route-type.ts'
import { type KnownPath, knownPathOf } from './known-paths.ts'

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

/** The compiled endings of one policy. */
export class RouteTypes {
  readonly #endings: readonly Ending[]
  readonly #default: RouteType

  constructor(routes: Routes = {}) {
    this.#endings = endingsOf(routes)
    this.#default = routes[any] ?? 'Completions'
  }

  /**
   * Returns the type of the longest matching ending, otherwise that of `*`, otherwise Completions. `path`
   * has no query. Returns undefined if providers may read the path differently; the request is rejected.
   */
  typeOf(path: string): RouteType | undefined {
    if (this.#endings.length === 0) return this.#default
    const plain = plainPath(path)
    return plain === undefined ? undefined : (this.#mapped(plain) ?? this.#default)
  }

  /**
   * Returns what a path is in the APIs of vendors, if only the type of all other paths applies to it and its
   * requests have another format.
   */
  unmappedPath(path: string): KnownPath | undefined {
    const plain = plainPath(path)
    if (plain === undefined || this.#mapped(plain) !== undefined) return undefined
    return otherPath(plain, this.#default)
  }

  #mapped(plain: string): RouteType | undefined {
    return this.#endings.find(({ text }) => plain.endsWith(text))?.type
  }
}

/** Returns the known path that a request has, if it is one of another type than that of all other paths. */
function otherPath(plain: string, type: RouteType): KnownPath | undefined {
  if (unreadTypes.has(type)) return undefined
  const known = knownPathOf(plain)
  return known?.type === type ? undefined : known
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
