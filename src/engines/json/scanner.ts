/**
 * Reads JSON from its bytes, so that a message that is only passed on need not be parsed. A scan accepts only
 * what `JSON.parse` accepts, and finds the same members.
 */
import { bufferOf } from '../../ground/base/buffers.ts'
import type { JsonObject } from '../../ground/base/json-object.ts'
import { ascii, escaped, isSameName, kindOf, plain, unescaped } from './name-kinds.ts'
import { OpenNames } from './open-names.ts'
import { parseJson } from './parse.ts'
import {
  afterScalar,
  afterSpace,
  afterString,
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  hasBytes,
  letterN,
  openBrace,
  openBracket,
  quote,
} from './syntax.ts'

/** Checks the bytes [start, end) between the quotes of a string, which may contain escapes. */
export type StringCheck = (bytes: Buffer, start: number, end: number) => boolean

export interface ByteRange {
  readonly start: number
  /** Offset after the last byte. */
  readonly end: number
}

/** Which objects a scan refuses. */
export interface RefusalRules {
  /** Checks of strings in members of objects inside the object, by the names of those members. */
  readonly checked?: Readonly<Record<string, StringCheck>>
  /** Names of members that are refused, at any depth. */
  readonly refused?: readonly string[]
  /** Names in small letters that members of objects inside the object must not have in another case. */
  readonly caseSensitive?: readonly string[]
}

interface ScanRules extends RefusalRules {
  /** Members of the object that `values` returns. */
  readonly read?: readonly string[]
  /** Other members of the object whose positions are noted. */
  readonly noted?: readonly string[]
  /**
   * Which names of members are accepted:
   * - `unescaped`: names without escapes. If a member occurs again, the last one counts, as for `JSON.parse`.
   * - `plain`: like `unescaped`, but the object itself is refused if another reader may find other members: a member
   *   occurs twice, or its name has capitals or bytes beyond ASCII.
   * - `ascii`: like `plain`, but names may have capitals, because readers of the format heed the case.
   * - `unique`: all names, if no object at any depth has one of them twice.
   */
  readonly names?: 'unescaped' | 'plain' | 'ascii' | 'unique'
  /** Maximum number of objects and arrays in each other. */
  readonly maxDepth?: number
}

interface Rule {
  readonly nameBytes: Uint8Array
  /** Index of the member of the object itself; negative if it is not needed. */
  readonly index: number
  readonly check: StringCheck | undefined
  readonly isRefused: boolean
}

const defaultMaxDepth = 64
const none: readonly string[] = []

/** Scans documents by the same rules. Results are valid until the next scan. */
export class JsonScanner {
  /** Rules by the length of their names, because most names have another length. */
  readonly #rules: (Rule[] | undefined)[] = []
  readonly #caseSensitive: readonly string[]
  /** Depth below which no rules apply. */
  readonly #ruleDepth: number
  readonly #members: readonly string[]
  readonly #readCount: number
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  readonly #maxDepth: number
  /** Depth up to which objects must not have a name twice. */
  readonly #uniqueDepth: number
  readonly #names: OpenNames
  /** Accepted names of the object itself and of those inside it. */
  readonly #topKind: number
  readonly #innerKind: number
  /** For each depth, the byte that closes the object or array there. */
  readonly #closers: Uint8Array
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0
  #depth = 0
  /** Rule for the last member. */
  #rule: Rule | undefined
  /** Whether the last item was the beginning of an object or array. */
  #hasOpened = false
  /** Index of the needed member of the object itself that is open; negative if it is not needed. */
  #openMember = -1
  #problem = ''
  #problemAt = 0

  constructor(rules: ScanRules) {
    const { read = [], noted = [], checked = {}, refused = [], names = 'unescaped' } = rules
    this.#maxDepth = rules.maxDepth ?? defaultMaxDepth
    this.#closers = new Uint8Array(this.#maxDepth + 1)
    this.#names = new OpenNames(this.#maxDepth)
    this.#caseSensitive = rules.caseSensitive ?? none
    this.#topKind = { unescaped, plain, ascii, unique: escaped }[names]
    this.#innerKind = names === 'unique' ? escaped : unescaped
    this.#uniqueDepth = { unescaped: 0, plain: 1, ascii: 1, unique: this.#maxDepth }[names]
    this.#members = [...new Set([...read, ...noted])]
    this.#readCount = read.length
    this.#starts = new Int32Array(this.#members.length)
    this.#ends = new Int32Array(this.#members.length)
    const inner = new Set([...Object.keys(checked), ...refused])
    this.#ruleDepth = inner.size > 0 ? this.#maxDepth : 1
    for (const name of new Set([...this.#members, ...inner])) {
      const index = this.#members.indexOf(name)
      const check = Object.hasOwn(checked, name) ? checked[name] : undefined
      const nameBytes = Buffer.from(name)
      const rule = { nameBytes, index, check, isRefused: refused.includes(name) }
      this.#rules[nameBytes.length] = [...(this.#rules[nameBytes.length] ?? []), rule]
    }
  }

  /** Returns false if the bytes are not a JSON object, or must be parsed as a whole. */
  scanObject(bytes: Buffer): boolean {
    return bytes[afterSpace(bytes, 0)] === openBrace && this.scan(bytes)
  }

  /** Scans a text. `utf8` is its encoding, if known. Offsets are those of the text. */
  scanText(text: string, utf8?: Uint8Array): boolean {
    const isAscii = utf8?.length === text.length
    return this.scan(isAscii ? bufferOf(utf8) : unitsOf(text), text.length, text)
  }

  /** Returns false if the bytes are no JSON, or are refused. `text` is set if the bytes are its units. */
  scan(bytes: Buffer, length = bytes.length, text?: string): boolean {
    this.#bytes = bytes
    this.#length = length
    this.#starts.fill(-1)
    this.#names.reset(bytes, text)
    const end = this.#scanFrom(bytes, afterSpace(bytes, 0))
    if (end >= 0 && end !== length) this.#fail(end, 'something follows the value')
    return end === length
  }

  /** Releases what was scanned last. */
  release(): void {
    this.#bytes = noBytes
    this.#names.reset()
  }

  /** What is wrong with the document that was refused. */
  get problem(): string {
    return `${this.#problem}, at offset ${this.#problemAt}`
  }

  #fail(at: number, problem: string): number {
    this.#problem = problem
    this.#problemAt = at
    return -1
  }

  /** Returns the offset after the value at `from` and the space after it; negative if it is not accepted. */
  #scanFrom(bytes: Buffer, from: number): number {
    this.#depth = 0
    let at = from
    for (;;) {
      at = this.#readItem(bytes, at)
      if (at < 0) return -1
      const isInside = this.#hasOpened && bytes[at] !== this.#closers[this.#depth]
      if (isInside) continue
      at = this.#close(bytes, at)
      if (this.#depth === 0) return at
      if (bytes[at] !== comma) return this.#fail(at, 'a comma or the end is missing')
      at = afterSpace(bytes, at + 1)
    }
  }

  /** Reads a scalar or the beginning of an object or array, with its name if it has one, and space after it. */
  #readItem(bytes: Buffer, from: number): number {
    const depth = this.#depth
    let at = from
    this.#rule = undefined
    if (depth > 0 && this.#closers[depth] === closeBrace) {
      at = this.#readName(bytes, from)
      if (at < 0) return -1
    }
    const rule = this.#rule as Rule | undefined
    const member = depth === 1 && rule !== undefined ? rule.index : -1
    if (member >= 0) this.#starts[member] = at
    const first = bytes[at]
    if (first === openBrace) return this.#open(bytes, at, member, closeBrace)
    if (first === openBracket) return this.#open(bytes, at, member, closeBracket)
    this.#hasOpened = false
    const end = afterScalar(bytes, at)
    if (end < 0) return this.#failScalar(~end, first)
    if (depth > 1 && isRefusedBy(rule, bytes, at, end)) return this.#fail(at, 'a text is refused')
    if (member >= 0) this.#ends[member] = end
    return afterSpace(bytes, end)
  }

  #failScalar(at: number, first: number | undefined): number {
    if (first !== quote) return this.#fail(at, 'this is no JSON')
    if (at >= this.#length) return this.#fail(at, 'a string has no end')
    const isEscape = this.#bytes[at] === backslash
    return this.#fail(
      at,
      isEscape ? 'a string has a bad escape' : 'a string has a control character',
    )
  }

  /** Reads the name of a member, the colon, and space after it. */
  #readName(bytes: Buffer, from: number): number {
    const depth = this.#depth
    if (bytes[from] !== quote) return this.#fail(from, 'a key is missing')
    const end = afterString(bytes, from)
    if (end < 0) return this.#failScalar(~end, quote)
    const kind = kindOf(bytes, from + 1, end - 1)
    if (kind > (depth === 1 ? this.#topKind : this.#innerKind)) {
      return this.#fail(from, 'a key is refused')
    }
    if (depth > 1 && kind > plain && this.#isInOtherCase(bytes, from + 1, end - 1, kind)) {
      return this.#fail(from, 'a key is in another case')
    }
    const at = afterSpace(bytes, end)
    if (bytes[at] !== colon) return this.#fail(at, 'a colon is missing')
    if (depth <= this.#uniqueDepth && !this.#names.add(depth, from, end, kind <= ascii)) {
      return this.#fail(at + 1, `the key ${JSON.stringify(this.#names.last)} is there twice`)
    }
    if (depth <= this.#ruleDepth) {
      this.#rule =
        kind === escaped
          ? this.#ruleNamed(this.#names.last)
          : this.#ruleAt(bytes, from + 1, end - 1)
      if (this.#rule?.isRefused) return this.#fail(from, 'a key is refused')
    }
    return afterSpace(bytes, at + 1)
  }

  /** Whether a name that is not in small letters may be read as one that is case-sensitive. */
  #isInOtherCase(bytes: Buffer, start: number, end: number, kind: number): boolean {
    // Some letters beyond ASCII become ASCII letters, so the document is parsed as a whole.
    if (kind !== ascii) return this.#caseSensitive.length > 0
    return this.#caseSensitive.some((name) => isSameName(bytes, start, end, name))
  }

  #ruleNamed(name: string): Rule | undefined {
    const nameBytes = Buffer.from(name)
    return this.#rules[nameBytes.length]?.find((rule) => nameBytes.equals(rule.nameBytes))
  }

  #ruleAt(bytes: Buffer, start: number, end: number): Rule | undefined {
    const rules = this.#rules[end - start]
    if (rules === undefined) return undefined
    for (const rule of rules) if (hasBytes(bytes, start, rule.nameBytes)) return rule
    return undefined
  }

  #open(bytes: Buffer, from: number, member: number, closer: number): number {
    if (this.#depth === this.#maxDepth) return this.#fail(from, 'values lie too deep in each other')
    if (this.#depth === 1) this.#openMember = member
    const depth = ++this.#depth
    this.#closers[depth] = closer
    if (depth <= this.#uniqueDepth) this.#names.open(depth)
    this.#hasOpened = true
    return afterSpace(bytes, from + 1)
  }

  /** Reads the ends of all objects and arrays that end here, and space after them. */
  #close(bytes: Buffer, from: number): number {
    let at = from
    while (this.#depth > 0 && bytes[at] === this.#closers[this.#depth]) {
      // The names of the object itself are kept.
      if (this.#depth > 1 && this.#depth <= this.#uniqueDepth) this.#names.close(this.#depth)
      this.#depth--
      at++
      if (this.#depth === 1 && this.#openMember >= 0) this.#ends[this.#openMember] = at
      at = afterSpace(bytes, at)
    }
    return at
  }

  /** Returns the members to read that are present, parsed. */
  values(): JsonObject {
    const values: Record<string, unknown> = {}
    for (let member = 0; member < this.#readCount; member++) {
      const start = this.#starts[member] ?? -1
      const name = this.#members[member]
      if (start >= 0 && name !== undefined) {
        values[name] = parsedValue(this.#bytes, start, this.#ends[member] ?? start)
      }
    }
    return values
  }

  /** Returns whether the object has a member of this name that is neither null nor an empty array. */
  isFilled(name: string): boolean {
    const start = this.startOf(name)
    if (start < 0) return false
    const first = this.#bytes[start]
    if (first === openBracket) {
      return this.#bytes[afterSpace(this.#bytes, start + 1)] !== closeBracket
    }
    return first !== letterN
  }

  /** Returns whether the object has a member of this name that is an array. */
  isArray(name: string): boolean {
    const start = this.startOf(name)
    return start >= 0 && this.#bytes[start] === openBracket
  }

  /** Returns where the value of a member is, the last one of this name; undefined if there is none. */
  rangeOf(name: string): ByteRange | undefined {
    const start = this.startOf(name)
    return start < 0 ? undefined : { start, end: this.endOf(name) }
  }

  /** Returns the offset of the value of a member; negative if there is none. */
  startOf(name: string): number {
    return this.#starts[this.#members.indexOf(name)] ?? -1
  }

  /** Returns the offset after the value of a member that is present. */
  endOf(name: string): number {
    return this.#ends[this.#members.indexOf(name)] ?? -1
  }

  /** Returns the names of the members that are neither read nor noted, if names must be plain or unique. */
  otherNames(): readonly string[] {
    const names = this.#names
    let known = 0
    for (const start of this.#starts) if (start >= 0) known++
    if (known === names.count) return none
    const all = Array.from({ length: names.count }, (_, at) => names.textAt(at))
    return all.filter((name) => !this.#members.includes(name))
  }
}

const noBytes = Buffer.alloc(0)

function isRefusedBy(rule: Rule | undefined, bytes: Buffer, start: number, end: number): boolean {
  const check = rule?.check
  return check !== undefined && bytes[start] === quote && !check(bytes, start + 1, end - 1)
}

/** Parses bytes [start, end), which are one JSON value. */
function parsedValue(bytes: Buffer, start: number, end: number): unknown {
  if (bytes[start] === quote) {
    const text = bytes.toString('utf8', start + 1, end - 1)
    if (!text.includes('\\')) return text
  }
  return parseJson(bytes.toString('utf8', start, end))
}

/** Takes the units of most texts. */
const units = Buffer.alloc(64 * 1024)
const beyondLatin1 = /[\u0100-\uffff]/
const allBeyondLatin1 = /[\u0100-\uffff]/g

/** Returns a byte for each UTF-16 unit of a text, followed by a zero. Units above 255, which have no meaning in JSON, become 255. */
function unitsOf(text: string): Buffer {
  const latin1 = beyondLatin1.test(text) ? text.replaceAll(allBeyondLatin1, '\xff') : text
  const bytes = text.length < units.length ? units : Buffer.allocUnsafe(text.length + 1)
  bytes.write(latin1, 'latin1')
  bytes[text.length] = 0
  return bytes
}
