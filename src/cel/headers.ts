import { redacted } from '../base/credential-names.ts'
import { CelError, noOverload } from './error.ts'
import { type CelResult, type CelValue, CelView, typeName } from './value.ts'

/** The header fields of a message, as their owner keeps them; names in lower case. */
export interface HeaderSource {
  /** Values of all lines of a name in order, one alone without a list; undefined without any. */
  get(name: string): string | readonly string[] | undefined
  names(): readonly string[]
}

/** How the values of one name are shown. */
type Form =
  /** One as a text, several as a list. */
  | 'plain'
  /** One text, with commas between. */
  | 'join'
  /** A list of the lines. */
  | 'raw'
  /** A list of what stands between commas. */
  | 'split'

/** Names in lower case. */
interface SensitiveNames {
  has(name: string): boolean
}

const noCookie = new CelError('missing', 'there is no such cookie')

/** Headers as a map; names in any case. */
export class HeadersView extends CelView {
  readonly #source: HeaderSource
  readonly #sensitive: SensitiveNames
  readonly #form: Form
  readonly #isRedacted: boolean

  /** @param sensitive names in lower case, whose values `redacted()` hides */
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
    if (this.#isRedacted && this.#sensitive.has(name)) return this.#show(redacted)
    return this.#form === 'plain' ? found : this.#show(found)
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

  #show(found: string | readonly string[]): CelResult {
    const lines = typeof found === 'string' ? [found] : found
    if (this.#form === 'plain') return found
    if (this.#form === 'raw') return lines
    if (this.#form === 'join') return lines.join(', ')
    return lines.flatMap((line) => line.split(',').map((part) => part.trim()))
  }

  /** The first cookie of the name (RFC 6265, 5.4), quotes around its value taken off. */
  #cookie(name: CelValue | undefined): CelResult {
    if (typeof name !== 'string') return noOverload('cookie', 'map', typeName(name))
    if (this.#isRedacted && this.#sensitive.has('cookie')) return redacted
    const found = this.#source.get('cookie') ?? []
    for (const pair of (typeof found === 'string' ? [found] : found).join(';').split(';')) {
      const equals = pair.indexOf('=')
      if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
      const value = pair.slice(equals + 1).trim()
      return value.length > 1 && /^".*"$/.test(value) ? value.slice(1, -1) : value
    }
    return noCookie
  }
}

/** Methods that values of suppliers may have beside the functions of the language. */
export const viewMethods: ReadonlySet<string> = new Set([
  'join',
  'raw',
  'split',
  'redacted',
  'cookie',
  'unredacted',
])
