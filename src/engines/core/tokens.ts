import { readVocabulary, readVocabularyImage } from './built-files.ts'
import { CoreError } from './errors.ts'
import { sizeOf, TextHost } from './text-host.ts'
import { type EncodingName, encodingForModel } from './tokens-models.ts'

export { type EncodingName, encodingForModel, type ModelEncoding } from './tokens-models.ts'

export interface CountOptions {
  /**
   * How special tokens such as `<|endoftext|>` count: as ordinary text, for text of users (the
   * default), or as one token each, for prompts that a serializer has made.
   */
  readonly specialTokens?: 'text' | 'token'
}

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
/** Matches the form of all special tokens; `specials` lists those that each encoding has. */
const specialShape = /(<\|[a-z_]+\|>)/

/** The thread's instance of the core for tokens, with its vocabularies. */
class TokenHost extends TextHost {
  readonly #handles = new Map<EncodingName, number>()
  /** Vocabularies that are partly loaded. */
  readonly #loading = new Map<EncodingName, Generator<undefined, number>>()

  handleOf(name: EncodingName): number {
    for (;;) {
      const handle = this.loadStep(name)
      if (handle !== undefined) return handle
    }
  }

  /** Does the next part of loading a vocabulary. Returns its handle once it is loaded. */
  loadStep(name: EncodingName): number | undefined {
    const known = this.#handles.get(name)
    if (known !== undefined) return known
    const steps = this.#loading.get(name) ?? this.#load(name)
    // If a step throws, the next call starts again.
    this.#loading.delete(name)
    const { done, value } = steps.next()
    if (done === true) this.#handles.set(name, value)
    else this.#loading.set(name, steps)
    return value
  }

  *#load(name: EncodingName): Generator<undefined, number> {
    return (yield* this.#loadImage(name)) ?? this.#loadFile(name)
  }

  /** Loads a vocabulary from its image. Returns undefined if there is none that fits the core. */
  *#loadImage(name: EncodingName): Generator<undefined, number | undefined> {
    let address = 0
    let size = 0
    const steps = readVocabularyImage(name, (needed) => {
      size = needed
      address = this.core.allocate(size)
      return () => this.core.bytes.subarray(address, address + size)
    })
    const isRead = steps !== undefined && (yield* steps)
    const handle = isRead
      ? this.core.run('tokens_adopt', (exports) => exports.tokens_adopt(address, size))
      : 0
    if (handle > 0) return handle
    if (address !== 0) this.core.free(address)
    return undefined
  }

  #loadFile(name: EncodingName): number {
    const file = readVocabulary(name)
    const address = this.workspace(file.length)
    this.core.bytes.set(file, address)
    const handle = this.core.run('tokens_load', (exports) =>
      exports.tokens_load(address, file.length),
    )
    this.trim()
    if (handle < 0) throw new CoreError(handle, `loading ${name}`)
    return handle
  }
}

let shared: TokenHost | undefined

/** Returns the thread's host, or a new one after a trap. */
function currentHost(): TokenHost {
  if (shared === undefined || shared.core.trap !== undefined) shared = new TokenHost()
  return shared
}

function countText(text: string | Uint8Array, encoding: EncodingName): number {
  const host = currentHost()
  const handle = host.handleOf(encoding)
  const address = host.workspace(sizeOf(text))
  const length = host.put(text, address)
  const count = host.core.run('tokens_count', (exports) =>
    exports.tokens_count(handle, address, length),
  )
  host.trim()
  if (count < 0) throw new CoreError(count, 'counting tokens')
  return count
}

/** Splits a text at its special tokens, which get the odd indices. */
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
 * Loads a vocabulary into this thread's token instance; later calls do nothing. The first count
 * does so too, but that takes some milliseconds, and a tenth of a second without the vocabulary's image,
 * so hosts call this in advance. Throws if the vocabulary's file is missing, and CoreError without
 * memory.
 */
export function loadEncoding(encoding: EncodingName): void {
  currentHost().handleOf(encoding)
}

/** Like `loadEncoding`, but other work of the thread runs while the image of the vocabulary is read. */
export async function loadEncodingInSteps(encoding: EncodingName): Promise<void> {
  while (currentHost().loadStep(encoding) === undefined) {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/**
 * The number of tokens of a text, exactly as `tiktoken` counts. Bytes are read as UTF-8; invalid
 * bytes, and lone surrogates of a string, count as U+FFFD. Throws like `loadEncoding`, and CoreTrap
 * (see index.ts).
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
  // A text has at most as many tokens as bytes.
  const size = sizeOf(text)
  const room = (typeof text === 'string' ? Buffer.byteLength(text) : size * 3) * 4
  const out = host.workspace(room + size)
  const address = out + room
  const length = host.put(text, address)
  const count = host.core.run('tokens_encode', (exports) =>
    exports.tokens_encode(handle, address, length, out, room >> 2),
  )
  const ids = count < 0 ? undefined : new Uint32Array(host.core.words.buffer, out, count).slice()
  host.trim()
  if (ids === undefined) throw new CoreError(count, 'encoding tokens')
  return ids
}

/** Returns the ids of a text's tokens, exactly as `tiktoken` does. Otherwise works like `countTokens`. */
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
  /** Whether the count is the vendor's. Otherwise it is an estimate (see tokens-models.ts). */
  readonly exact: boolean
}

/** Counts tokens for a model: exactly if its vocabulary is published, otherwise as an upper estimate. */
export function countTokensForModel(text: string | Uint8Array, model: string): ModelCount {
  const { encoding, exact, factor } = encodingForModel(model)
  return { tokens: Math.ceil(countTokens(text, encoding) * factor), exact }
}
