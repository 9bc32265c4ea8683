import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { CoreError } from './errors.ts'
import { CoreInstance } from './instance.ts'
import { type EncodingName, encodingForModel } from './tokens-models.ts'

export { type EncodingName, encodingForModel, type ModelEncoding } from './tokens-models.ts'

export interface CountOptions {
  /**
   * What `<|endoftext|>` and the like are: ordinary text, as in anything that users write (the
   * default), or one token each, as in prompts that a serializer has made.
   */
  readonly specialTokens?: 'text' | 'token'
}

/** A workspace above this is given back after the call that needed it. */
const LARGEST_KEPT = 1 << 20
/** Readable bytes that every text is followed by. */
const SLACK = 16

const endOfText = '<|endoftext|>'
const specials: Readonly<Record<EncodingName, ReadonlyMap<string, number>>> = {
  o200k_base: new Map([
    [endOfText, 199999],
    ['<|endofprompt|>', 200018],
  ]),
  cl100k_base: new Map([
    [endOfText, 100257],
    ['<|fim_prefix|>', 100258],
    ['<|fim_middle|>', 100259],
    ['<|fim_suffix|>', 100260],
    ['<|endofprompt|>', 100276],
  ]),
}
/** All of them look like this; which are an encoding's own its map says. */
const specialShape = /(<\|[a-z_]+\|>)/

/** Beside the bundle in dist/, or where the sources in src/core see dist/. */
const places = ['./', '../../dist/']

/** The bytes of a vocabulary. Throws when the file is not there: `npm run build` makes it. */
function readVocabulary(name: EncodingName): Buffer {
  const paths = places.map((place) =>
    fileURLToPath(new URL(`${place}${name}.tokens.br`, import.meta.url)),
  )
  const path = paths.find((candidate) => existsSync(candidate))
  if (path === undefined) {
    throw new Error(
      `${name}.tokens.br is missing; looked at ${paths.join(' and ')}: run npm run build`,
    )
  }
  return brotliDecompressSync(readFileSync(path))
}

/** The thread's instance for tokens, with its vocabularies and a block for texts that calls reuse. */
class TokenHost {
  readonly core = new CoreInstance()
  readonly #handles = new Map<EncodingName, number>()
  #workspace = 0
  #capacity = 0

  handleOf(name: EncodingName): number {
    return this.#handles.get(name) ?? this.#load(name)
  }

  #load(name: EncodingName): number {
    const file = readVocabulary(name)
    const address = this.core.allocate(file.length + SLACK)
    this.core.bytes.set(file, address)
    const handle = this.core.run('tokens_load', (exports) =>
      exports.tokens_load(address, file.length),
    )
    this.core.free(address)
    if (handle < 0) throw new CoreError(handle, `loading ${name}`)
    this.#handles.set(name, handle)
    return handle
  }

  /** Address of at least `size` bytes. */
  workspace(size: number): number {
    if (size > this.#capacity) {
      this.#release()
      const capacity = Math.max(8192, size)
      this.#workspace = this.core.allocate(capacity)
      this.#capacity = capacity
    }
    return this.#workspace
  }

  #release(): void {
    if (this.#workspace !== 0) this.core.free(this.#workspace)
    this.#workspace = 0
    this.#capacity = 0
  }

  /** Gives a large workspace back. */
  trim(): void {
    if (this.#capacity > LARGEST_KEPT) this.#release()
  }

  /** Copies a text to `address`; its length in bytes. Lone surrogates become U+FFFD. */
  put(text: string | Uint8Array, address: number): number {
    if (typeof text === 'string') return this.core.bytes.write(text, address, 'utf8')
    this.core.bytes.set(text, address)
    return text.length
  }
}

let shared: TokenHost | undefined

/** The thread's host; a new one after a trap. */
function currentHost(): TokenHost {
  if (shared === undefined || shared.core.trap !== undefined) shared = new TokenHost()
  return shared
}

/** Most bytes that a text can take in UTF-8. */
const sizeOf = (text: string | Uint8Array) =>
  typeof text === 'string' ? text.length * 3 : text.length

function countText(text: string | Uint8Array, encoding: EncodingName): number {
  const host = currentHost()
  const handle = host.handleOf(encoding)
  const address = host.workspace(sizeOf(text) + SLACK)
  const length = host.put(text, address)
  const count = host.core.run('tokens_count', (exports) =>
    exports.tokens_count(handle, address, length),
  )
  host.trim()
  if (count < 0) throw new CoreError(count, 'counting tokens')
  return count
}

/** The text between special tokens, and those, in turn; a special token stands at every odd index. */
function splitSpecials(text: string | Uint8Array, encoding: EncodingName): string[] {
  const whole = typeof text === 'string' ? text : Buffer.from(text).toString()
  const known = specials[encoding]
  const parts = ['']
  for (const [index, part] of whole.split(specialShape).entries()) {
    if (index % 2 === 1 && known.has(part)) parts.push(part, '')
    else parts[parts.length - 1] += part
  }
  return parts
}

/**
 * Loads a vocabulary into this thread's token instance, once; later calls do nothing. Counting does
 * it by itself at its first use, but it takes a tenth of a second: hosts call this when they learn
 * that they will count. Throws when the vocabulary's file is missing, CoreError without memory.
 */
export function loadEncoding(encoding: EncodingName): void {
  currentHost().handleOf(encoding)
}

/**
 * How many tokens a text is, exactly as `tiktoken` counts. Bytes are taken as UTF-8; whatever is not,
 * and lone surrogates of a string, count as the U+FFFD that a decoder puts there. Throws as
 * `loadEncoding` does, and CoreTrap (see index.ts).
 */
export function countTokens(
  text: string | Uint8Array,
  encoding: EncodingName,
  options: CountOptions = {},
): number {
  if (options.specialTokens !== 'token') return countText(text, encoding)
  const parts = splitSpecials(text, encoding)
  return parts.reduce(
    (sum, part, index) => sum + (index % 2 === 1 ? 1 : countText(part, encoding)),
    0,
  )
}

function encodeText(text: string | Uint8Array, encoding: EncodingName): Uint32Array {
  const host = currentHost()
  const handle = host.handleOf(encoding)
  // No token is less than a byte.
  const size = sizeOf(text)
  const room = (typeof text === 'string' ? Buffer.byteLength(text) : size * 3) * 4
  const out = host.workspace(room + size + 2 * SLACK)
  const address = out + room + SLACK
  const length = host.put(text, address)
  const count = host.core.run('tokens_encode', (exports) =>
    exports.tokens_encode(handle, address, length, out, room >> 2),
  )
  const ids = count < 0 ? undefined : new Uint32Array(host.core.words.buffer, out, count).slice()
  host.trim()
  if (ids === undefined) throw new CoreError(count, 'encoding tokens')
  return ids
}

/** The ids of a text's tokens, exactly as `tiktoken` gives them; otherwise as `countTokens`. */
export function encodeTokens(
  text: string | Uint8Array,
  encoding: EncodingName,
  options: CountOptions = {},
): Uint32Array {
  if (options.specialTokens !== 'token') return encodeText(text, encoding)
  const known = specials[encoding]
  const parts = splitSpecials(text, encoding).map((part, index) =>
    index % 2 === 1 ? [known.get(part) ?? 0] : [...encodeText(part, encoding)],
  )
  return Uint32Array.from(parts.flat())
}

export interface ModelCount {
  readonly tokens: number
  /** Is this what the vendor counts, or an estimate (see tokens-models.ts)? */
  readonly exact: boolean
}

/** Tokens of a text for a model: exact where its vocabulary is published, else an estimate, rounded up. */
export function countTokensForModel(text: string | Uint8Array, model: string): ModelCount {
  const { encoding, exact, factor } = encodingForModel(model)
  return { tokens: Math.ceil(countTokens(text, encoding) * factor), exact }
}
