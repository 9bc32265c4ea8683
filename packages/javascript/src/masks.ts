import { builtinReplacements } from '../../../src/engines/core/regex-builtins.ts'
import {
  type Mask as CoreMask,
  type MaskStream as CoreStream,
  compileMask,
  type MaskRule,
  patternReplacement,
} from '../../../src/engines/core/regex-mask.ts'
import { plain } from './bytes.ts'
import { freeLater } from './free-later.ts'
import { PatternError } from './patterns.ts'

/** Name of a detector of the core. */
export type BuiltinName =
  | 'Ssn'
  | 'CreditCard'
  | 'PhoneNumber'
  | 'Email'
  | 'CaSin'
  | 'Iban'
  | 'IpAddress'
  | 'ApiKey'
  | 'PrivateKey'
  | 'VatNumber'
  | 'DeTaxId'
  | 'FrNir'
  | 'EsNif'
  | 'ItFiscalCode'
  | 'NlBsn'
  | 'PlPesel'
  | 'SePersonnummer'
  | 'UkNino'
  | 'UkNhs'
  | 'InAadhaar'
  | 'BrCpf'
  | 'BrCnpj'
  | 'Secret'

/** Replaces the matches of a pattern, with `<masked>` if there is no replacement. */
export interface PatternRule {
  readonly pattern: string
  readonly replacement?: string
  readonly ignoreCase?: boolean
}

/** Replaces what a builtin finds. If there is no replacement, it is the one that the gateway uses. */
export interface BuiltinRule {
  readonly builtin: BuiltinName
  readonly replacement?: string
}

/**
 * Replaces words and names, with `<masked>` if there is no replacement. They match as a whole, in upper or lower case. At
 * most 10,000 words of 256 bytes.
 */
export interface WordsRule {
  readonly words: readonly string[]
  readonly replacement?: string
}

/** A text is a pattern. */
export type Rule = string | PatternRule | BuiltinRule | WordsRule

/** The detectors of the core. `{ ...Builtin.Email, replacement: '<mail>' }` has another replacement. */
export const Builtin: { readonly [Name in BuiltinName]: BuiltinRule } = {
  Ssn: { builtin: 'Ssn' },
  CreditCard: { builtin: 'CreditCard' },
  PhoneNumber: { builtin: 'PhoneNumber' },
  Email: { builtin: 'Email' },
  CaSin: { builtin: 'CaSin' },
  Iban: { builtin: 'Iban' },
  IpAddress: { builtin: 'IpAddress' },
  ApiKey: { builtin: 'ApiKey' },
  PrivateKey: { builtin: 'PrivateKey' },
  VatNumber: { builtin: 'VatNumber' },
  DeTaxId: { builtin: 'DeTaxId' },
  FrNir: { builtin: 'FrNir' },
  EsNif: { builtin: 'EsNif' },
  ItFiscalCode: { builtin: 'ItFiscalCode' },
  NlBsn: { builtin: 'NlBsn' },
  PlPesel: { builtin: 'PlPesel' },
  SePersonnummer: { builtin: 'SePersonnummer' },
  UkNino: { builtin: 'UkNino' },
  UkNhs: { builtin: 'UkNhs' },
  InAadhaar: { builtin: 'InAadhaar' },
  BrCpf: { builtin: 'BrCpf' },
  BrCnpj: { builtin: 'BrCnpj' },
  Secret: { builtin: 'Secret' },
}

/** @throws TypeError that names the rule, if it is none. Callers in JavaScript have no types. */
function checkRule(rule: unknown, index: number): asserts rule is Rule {
  if (typeof rule === 'string') return
  const fail = (problem: string): never => {
    throw new TypeError(`rules[${index}]${problem}`)
  }
  if (typeof rule !== 'object' || rule === null) return fail(' must be a string or an object')
  const { builtin, pattern, words, replacement } = rule as Record<string, unknown>
  if ('builtin' in rule) {
    if (typeof builtin !== 'string' || !Object.hasOwn(Builtin, builtin)) {
      fail(`.builtin must be one of ${Object.keys(Builtin).join(', ')}`)
    }
  } else if ('words' in rule) {
    if (!Array.isArray(words) || !words.every((word) => typeof word === 'string')) {
      fail('.words must be an array of strings')
    }
  } else if (typeof pattern !== 'string') fail('.pattern must be a string')
  if (replacement !== undefined && typeof replacement !== 'string') {
    fail('.replacement must be a string')
  }
}

function ruleOf(rule: Rule, index: number): MaskRule {
  checkRule(rule, index)
  if (typeof rule === 'string') return { pattern: rule, replacement: patternReplacement }
  if ('builtin' in rule) {
    return {
      builtin: rule.builtin,
      replacement: rule.replacement ?? builtinReplacements[rule.builtin],
    }
  }
  if ('words' in rule) {
    return { words: rule.words, replacement: rule.replacement ?? patternReplacement }
  }
  const { pattern, replacement = patternReplacement, ignoreCase = false } = rule
  return { pattern, replacement, options: { caseInsensitive: ignoreCase } }
}

/** The rules as the core takes them. @internal */
export function rulesOf(rules: readonly Rule[]): MaskRule[] {
  if (!Array.isArray(rules)) throw new TypeError('rules must be an array')
  return rules.map(ruleOf)
}

/** The pattern, or the words, of a rule that the core has refused. @internal */
export function patternOf(rule: Rule | undefined): string {
  if (typeof rule === 'string') return rule
  if (rule !== undefined && 'words' in rule) return rule.words.join('\n')
  return rule !== undefined && 'pattern' in rule ? rule.pattern : ''
}

/** Rules that are applied together. Of overlapping matches, the replacement of the first is used. */
export class Mask {
  readonly #mask: CoreMask

  /** @throws PatternError */
  constructor(rules: readonly Rule[]) {
    const outcome = compileMask(rulesOf(rules))
    if (!outcome.ok) throw new PatternError(patternOf(rules[outcome.rule]), outcome)
    this.#mask = freeLater(this, outcome.mask)
  }

  /** Masks a whole text. */
  apply(text: string): string {
    return this.#mask.apply(text).text
  }

  /** Masks a whole text in UTF-8. */
  applyBytes(text: Uint8Array): Uint8Array<ArrayBuffer> {
    const stream = this.#mask.stream()
    try {
      return plain(stream.endBytes(text))
    } finally {
      stream.dispose()
    }
  }

  /** Whether any rule finds something to mask. */
  isMatch(text: string): boolean {
    return this.#mask.isMatch(text)
  }

  /** How many bytes a stream holds back at most; undefined if a match can be of any length. */
  get holdBytes(): number | undefined {
    return this.#mask.holdBytes
  }

  /** Frees memory at once. Otherwise it is freed when the mask is collected. */
  [Symbol.dispose](): void {
    this.#mask.dispose()
  }

  /** @internal */
  static streamOf(mask: Mask): CoreStream {
    return mask.#mask.stream()
  }
}

/**
 * Masks a text that arrives in pieces. The result does not depend on where it was cut. A stream can also be passed
 * to `pipeThrough`, for chunks of text or of UTF-8. After an error, the rest of the text must not pass.
 */
export class MaskStream<Chunk extends string | Uint8Array = string> {
  readonly #stream: CoreStream
  #pair: TransformStream<Chunk, Chunk> | undefined

  constructor(mask: Mask) {
    this.#stream = freeLater(this, Mask.streamOf(mask))
  }

  /** Adds a piece. Returns what is ready. */
  push(piece: string): string {
    return this.#stream.push(piece)
  }

  /** Adds the last piece. Returns everything that remains. The stream cannot be used afterwards. */
  end(piece = ''): string {
    return this.#ended(this.#stream.end(piece))
  }

  /** Adds a piece in UTF-8, which may end inside a character. Returns what is ready. */
  pushBytes(piece: Uint8Array): Uint8Array<ArrayBuffer> {
    return plain(this.#stream.pushBytes(piece))
  }

  /** Like `end`, in UTF-8. */
  endBytes(piece: Uint8Array = new Uint8Array()): Uint8Array<ArrayBuffer> {
    return this.#ended(plain(this.#stream.endBytes(piece)))
  }

  /** The masked text, if the stream is used with `pipeThrough`. */
  get readable(): ReadableStream<Chunk> {
    return this.#transform().readable
  }

  get writable(): WritableStream<Chunk> {
    return this.#transform().writable
  }

  /** Frees memory at once. Otherwise it is freed when the stream ends or is collected. */
  [Symbol.dispose](): void {
    this.#stream.dispose()
  }

  #ended<Result>(result: Result): Result {
    this.#stream.dispose()
    return result
  }

  #transform(): TransformStream<Chunk, Chunk> {
    let isText = true
    this.#pair ??= new TransformStream<Chunk, Chunk>({
      transform: (chunk, controller) => {
        isText = typeof chunk === 'string'
        const out = typeof chunk === 'string' ? this.push(chunk) : this.pushBytes(chunk)
        if (out.length > 0) controller.enqueue(out as Chunk)
      },
      flush: (controller) => {
        const out = isText ? this.end() : this.endBytes()
        if (out.length > 0) controller.enqueue(out as Chunk)
      },
    })
    return this.#pair
  }
}
