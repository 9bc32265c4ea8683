import {
  HOST_ANY,
  HOST_EXACT,
  HOST_WILDCARD,
  PATH_EXACT,
  PATH_PREFIX,
  PATH_REGEX,
  PREDICATE_EXACT,
  PREDICATE_PATTERN,
  PREDICATE_SIZE,
  ROUTE_PREDICATES,
} from './abi.ts'

/** How a path, a header value or a query value is compared. */
export interface ValueMatch {
  /** regex: must match the whole value; the core's own syntax, linear time. */
  readonly type: 'exact' | 'regex'
  readonly value: string
}

export interface NamedMatch extends ValueMatch {
  readonly name: string
}

/** One match of one rule on one hostname: what the table decides by. */
export interface RouteSpec {
  /** Chosen by the host, from 0, small (they index an array), unique: what `match` answers. */
  readonly id: number
  /** The listener's scope, as given to `addListener`. */
  readonly scope: number
  /** `a.b`, `*.b` (one or more labels before), or undefined or '' for any. */
  readonly hostname?: string | undefined
  /** exact and prefix begin with `/`; prefix goes by whole segments, trailing slashes ignored. */
  readonly path: { readonly type: 'exact' | 'prefix' | 'regex'; readonly value: string }
  /** Case-sensitive; any when undefined. */
  readonly method?: string | undefined
  /** All must match; any one of a header's repeated values may. At most 64. */
  readonly headers?: readonly NamedMatch[] | undefined
  /** All must match the decoded first value of the parameter. At most 64. */
  readonly query?: readonly NamedMatch[] | undefined
  /** Milliseconds; older wins. */
  readonly createdAt: number
  /** `namespace/name`; the smaller bytes win. */
  readonly name: string
  readonly ruleIndex: number
  readonly matchIndex: number
}

const pathKinds = { exact: PATH_EXACT, prefix: PATH_PREFIX, regex: PATH_REGEX } as const

/** Kind of a hostname and the text that the core wants for it. */
export function hostKey(hostname: string | undefined): { kind: number; text: string } {
  if (hostname === undefined || hostname === '' || hostname === '*') {
    return { kind: HOST_ANY, text: '' }
  }
  if (hostname.startsWith('*.')) return { kind: HOST_WILDCARD, text: hostname.slice(1) }
  return { kind: HOST_EXACT, text: hostname }
}

/** The regex sources that a route needs, in the order that `encodeRoute` takes their handles. */
export function regexSources(spec: RouteSpec): string[] {
  return [spec.path, ...(spec.headers ?? []), ...(spec.query ?? [])]
    .filter(({ type }) => type === 'regex')
    .map(({ value }) => value)
}

/** Where routes are encoded, one after the other: thousands come at once, and leave no garbage. */
let scratch = Buffer.alloc(4_096)

/** UTF-16 code units become at most so many bytes each. */
const mostBytes = 3

/** Words first, bytes behind them; drawn in assembly/abi.ts. */
class SpecWriter {
  #offset: number
  #at = 0

  constructor(predicates: number) {
    this.#offset = ROUTE_PREDICATES + predicates * PREDICATE_SIZE
    this.#makeRoom(0)
  }

  #makeRoom(bytes: number): void {
    const needed = this.#offset + bytes
    if (needed <= scratch.length) return
    const larger = Buffer.alloc(2 * needed)
    scratch.copy(larger)
    scratch = larger
  }

  word(value: number): void {
    scratch.writeInt32LE(value | 0, this.#at)
    this.#at += 4
  }

  double(value: number): void {
    scratch.writeDoubleLE(value, this.#at)
    this.#at += 8
  }

  text(value: string): void {
    this.#makeRoom(mostBytes * value.length)
    const length = scratch.write(value, this.#offset)
    this.word(this.#offset)
    this.word(length)
    this.#offset += length
  }

  finish(): Buffer {
    return scratch.subarray(0, this.#offset)
  }
}

/** The bytes that route_add reads, good until the next call. `handles` belong to `regexSources`, in that order. */
export function encodeRoute(spec: RouteSpec, handles: readonly number[]): Buffer {
  const headers = spec.headers ?? []
  const query = spec.query ?? []
  const left = [...handles]
  const handleOf = (type: string) => (type === 'regex' ? (left.shift() ?? 0) : 0)
  const host = hostKey(spec.hostname)
  const writer = new SpecWriter(headers.length + query.length)
  writer.word(spec.id)
  writer.word(spec.scope)
  writer.word(host.kind)
  writer.text(host.text)
  writer.word(pathKinds[spec.path.type])
  writer.text(spec.path.value)
  writer.double(Number.isNaN(spec.createdAt) ? Number.POSITIVE_INFINITY : spec.createdAt)
  writer.word(handleOf(spec.path.type))
  writer.text(spec.name)
  writer.word(spec.ruleIndex)
  writer.word(spec.matchIndex)
  writer.text(spec.method ?? '')
  writer.word(headers.length)
  writer.word(query.length)
  writer.word(0)
  for (const { name, type, value } of [...headers, ...query]) {
    writer.word(type === 'regex' ? PREDICATE_PATTERN : PREDICATE_EXACT)
    writer.text(name)
    writer.text(value)
    writer.word(handleOf(type))
  }
  return writer.finish()
}
