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

/** How a header value or a query value is compared. */
export interface ValueMatch {
  /** A regex must match the whole value. It has the core's syntax (docs/regex.md) and takes linear time. */
  readonly type: 'exact' | 'regex'
  readonly value: string
}

export interface NamedMatch extends ValueMatch {
  readonly name: string
}

/** An entry of the table: one match of one rule on one hostname. */
export interface RouteSpec {
  /** Chosen by the host and returned by `match`. Unique, and small, because it indexes an array; from 0. */
  readonly id: number
  /** The listener's scope, as given to `addListener`. */
  readonly scope: number
  /** `a.b`, or `*.b` with one or more labels for `*`. If undefined or '', any hostname matches. */
  readonly hostname?: string | undefined
  /** Exact paths and prefixes begin with `/`. Prefixes match whole segments without trailing slashes. */
  readonly path: { readonly type: 'exact' | 'prefix' | 'regex'; readonly value: string }
  /** Method, case-sensitive; if undefined, any method matches. */
  readonly method?: string | undefined
  /** At most 64 headers, which must all match. If a header is repeated, one of its values is enough. */
  readonly headers?: readonly NamedMatch[] | undefined
  /** At most 64 query parameters, which must all match. The decoded first value of each is compared. */
  readonly query?: readonly NamedMatch[] | undefined
  /** Creation time in milliseconds. Between equal matches, the older route wins. */
  readonly createdAt: number
  /** `namespace/name`. Between equal matches of the same age, the name that sorts first by bytes wins. */
  readonly name: string
  readonly ruleIndex: number
  readonly matchIndex: number
}

const pathKinds = { exact: PATH_EXACT, prefix: PATH_PREFIX, regex: PATH_REGEX } as const

/** Returns the kind of a hostname, and its text for the core. */
export function hostKey(hostname: string | undefined): { kind: number; text: string } {
  if (hostname === undefined || hostname === '' || hostname === '*') {
    return { kind: HOST_ANY, text: '' }
  }
  if (hostname.startsWith('*.')) return { kind: HOST_WILDCARD, text: hostname.slice(1) }
  return { kind: HOST_EXACT, text: hostname }
}

/** Returns the regex sources of a route, in the order in which `encodeRoute` expects their handles. */
export function regexSources(spec: RouteSpec): string[] {
  return [spec.path, ...(spec.headers ?? []), ...(spec.query ?? [])]
    .filter(({ type }) => type === 'regex')
    .map(({ value }) => value)
}

/** Buffer for encoding one route at a time; reused, because thousands may be added at once. */
let scratch = Buffer.alloc(4_096)

/** Maximum number of UTF-8 bytes per UTF-16 code unit. */
const maxBytesPerUnit = 3

/** Writes a route as assembly/abi.ts describes it: words, followed by the bytes of its texts. */
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
    this.#makeRoom(maxBytesPerUnit * value.length)
    const length = scratch.write(value, this.#offset)
    this.word(this.#offset)
    this.word(length)
    this.#offset += length
  }

  finish(): Buffer {
    return scratch.subarray(0, this.#offset)
  }
}

/** Encodes a route for route_add; valid until the next call. `handles` have the order of `regexSources`. */
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
