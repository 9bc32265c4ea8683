import { cookiePairs } from '../../ground/base/cookie-pairs.ts'
import { redacted } from '../../ground/secrets/credential-names.ts'
import { CelError, noOverload } from './error.ts'
import { type CelResult, type CelValue, CelView, typeName } from './value.ts'

/** Supplies the header fields of a message; names are in lower case. */
export interface HeaderSource {
  /** Returns a single value as a string, several lines as a list, or undefined if there are none. */
  get(name: string): string | readonly string[] | undefined
  names(): readonly string[]
  /** Returns several lines as the one value that expressions read. If omitted, they read a list. */
  combine?(name: string, lines: readonly string[]): string
}

/** Joins the lines of a header to one value (RFC 9110 5.3; RFC 6265 5.4 for cookies). */
export function combinedLines(name: string, lines: readonly string[]): string {
  return lines.join(name === 'cookie' ? '; ' : ', ')
}

/** The form in which an expression reads the values of a name. */
type Form =
  /** A single value as a string. Several lines are combined by the source, or else a list. */
  | 'plain'
  /** One string, with commas between the values of all lines. */
  | 'join'
  /** A list with the value of each line. */
  | 'raw'
  /** A list with the parts of all values between commas. */
  | 'split'

/** A set of header names in lower case. */
interface SensitiveNames {
  has(name: string): boolean
}

const noCookie = new CelError('missing', 'there is no such cookie')

/** Header fields as a map. Expressions may read names in any case. */
export class HeadersView extends CelView {
  readonly #source: HeaderSource
  readonly #sensitive: SensitiveNames
  readonly #form: Form
  readonly #isRedacted: boolean

  /** @param sensitive header names whose values `redacted()` hides */
  constructor(
    source: HeaderSource,
    sensitive: SensitiveNames,
    form: Form = 'plain',
    isRedacted = false,
  ) {
    super()
    this.#source = source
    this.#sensitive = sensitive
    this.#form = form
    this.#isRedacted = isRedacted
  }

  override field(name: string): CelResult | undefined {
    const found = this.#source.get(name)
    if (found === undefined) {
      const lower = name.toLowerCase()
      return lower === name ? undefined : this.field(lower)
    }
    if (this.#isRedacted && this.#sensitive.has(name)) return this.#show(name, redacted)
    return this.#form === 'plain' && typeof found === 'string' ? found : this.#show(name, found)
  }

  override hasField(name: string): boolean {
    return this.#source.get(name.toLowerCase()) !== undefined
  }

  override fieldNames(): readonly string[] {
    return this.#source.names()
  }

  override method(name: string, args: readonly CelValue[]): CelResult | undefined {
    switch (name) {
      case 'join':
      case 'raw':
      case 'split':
        if (args.length > 0) return noOverload(name, 'map', ...args.map(typeName))
        return new HeadersView(this.#source, this.#sensitive, name, this.#isRedacted)
      case 'redacted':
        return new HeadersView(this.#source, this.#sensitive, this.#form, true)
      case 'cookie':
        return this.#cookie(args[0])
      default:
        return undefined
    }
  }

  #show(name: string, found: string | readonly string[]): CelResult {
    if (this.#form === 'plain') {
      return typeof found === 'string' ? found : (this.#source.combine?.(name, found) ?? found)
    }
    const lines = typeof found === 'string' ? [found] : found
    if (this.#form === 'raw') return lines
    if (this.#form === 'join') return combinedLines(name, lines)
    return lines.flatMap((line) => line.split(',').map((part) => part.trim()))
  }

  /** Returns the first cookie of this name (RFC 6265, 5.4), without quotes around its value. */
  #cookie(name: CelValue | undefined): CelResult {
    if (typeof name !== 'string') return noOverload('cookie', 'map', typeName(name))
    if (this.#isRedacted && this.#sensitive.has('cookie')) return redacted
    const found = this.#source.get('cookie') ?? []
    for (const pair of cookiePairs(typeof found === 'string' ? [found] : found)) {
      if (pair.name === name && pair.value !== undefined) return pair.value
    }
    return noCookie
  }
}

/** Methods that views may have in addition to the functions of CEL. */
export const viewMethods: ReadonlySet<string> = new Set([
  'join',
  'raw',
  'split',
  'redacted',
  'cookie',
  'unredacted',
])
