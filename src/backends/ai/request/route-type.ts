/**
 * Which format a request has, by the end of its path. A client must not be able to choose a weaker
 * type by writing the same path in another way, so paths are compared in one form that covers every
 * reading that a provider may have of them.
 */
import type { RouteType } from '../policy/schema.ts'

export type Routes = Readonly<Record<string, RouteType>>

const any = '*'

interface Ending {
  readonly text: string
  readonly type: RouteType
}

/** The endings of one policy, compiled once. */
export class RouteTypes {
  /** The longest first; of those that are the same to some provider, those that guards see. */
  readonly #endings: readonly Ending[]
  readonly #default: RouteType

  constructor(routes: Routes = {}) {
    this.#endings = Object.entries(routes)
      .filter(([text]) => text !== any)
      .map(([text, type]) => ({ text: plainPath(text) ?? text, type }))
      .sort((a, b) => b.text.length - a.text.length || unread(a) - unread(b))
    this.#default = routes[any] ?? 'Completions'
  }

  /**
   * The longest ending that fits, then `*`; Completions if nothing does. `path` has no query.
   * Undefined if providers may read the path in different ways: such a request must be refused.
   */
  typeOf(path: string): RouteType | undefined {
    if (this.#endings.length === 0) return this.#default
    const plain = plainPath(path)
    if (plain === undefined) return undefined
    return this.#endings.find(({ text }) => plain.endsWith(text))?.type ?? this.#default
  }
}

/** For providers without a policy. */
export const defaultRouteTypes = new RouteTypes()

const unread = ({ type }: Ending): number => (type === 'Passthrough' ? 1 : 0)

/** Has one reading only. */
const simple = /^(?:\/[a-z0-9_:@~-]+(?:\.[a-z0-9_:@~-]+)*)+$/

/** A server that decodes more often than that is out of reach of any gateway. */
const decodings = 3

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const control = /[\u0000-\u001f\u007f]/

/**
 * The path in lower case, with every escape decoded, also repeatedly, `\` as `/`, and without
 * parameters (`;a=b`), empty segments, and spaces and dots at the end of segments. Undefined if a
 * segment is `.` or `..`, or if there is a control character: no two servers agree on those.
 */
function plainPath(path: string): string | undefined {
  if (simple.test(path)) return path
  let text = path
  for (let round = 0; round < decodings && text.includes('%'); round++) {
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

/** Linear, unlike an expression with `+$`. */
function withoutTail(segment: string): string {
  let end = segment.length
  while (end > 0 && (segment[end - 1] === '.' || segment[end - 1] === ' ')) end--
  return segment.slice(0, end)
}
