/**
 * Reads a few members of a JSON object from its bytes, so that a message that is only passed on need not be
 * parsed. A scan accepts only what `JSON.parse` accepts, and reads the same values. It leaves unusual
 * documents to `JSON.parse`: those with escapes in keys, with deep nesting or with a byte order mark.
 */
import { type JsonObject, parseJson } from '../messages/json/json.ts'
import {
  afterKey,
  afterScalar,
  afterSpace,
  backslash,
  closeBrace,
  closeBracket,
  colon,
  comma,
  hasByte,
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
}

interface MemberRules extends RefusalRules {
  /** Members of the object that `values` returns. */
  readonly read: readonly string[]
  /** Other members of the object that `isFilled` and `isArray` know. */
  readonly noted?: readonly string[]
  /**
   * Refuses objects in which another reader may find other members: a member occurs twice, or its name has
   * letters other than small ASCII letters.
   */
  readonly needsPlainNames?: boolean
}

interface Rule {
  readonly name: string
  readonly nameBytes: Uint8Array
  /** Index of the member of the object itself; negative if it is not needed. */
  readonly index: number
  readonly check: StringCheck | undefined
  readonly isRefused: boolean
}

const maxDepth = 64
/** Maximum number of members of an object that needs plain names. */
const maxMembers = 64

/** Scans objects by the same rules. Results are valid until the next scan. */
export class MemberScanner {
  /** Rules by the length of their names, because most names have another length. */
  readonly #rules: (Rule[] | undefined)[] = []
  readonly #names: readonly string[]
  readonly #readCount: number
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  readonly #repeated: Uint8Array
  readonly #needsPlainNames: boolean
  /** Where the names of the object's members are, if it needs plain names. */
  readonly #nameStarts = new Int32Array(maxMembers)
  readonly #nameEnds = new Int32Array(maxMembers)
  #nameCount = 0
  /** For each depth, the byte that closes the object or array there. */
  readonly #closers = new Uint8Array(maxDepth + 1)
  #bytes: Buffer = Buffer.alloc(0)
  #depth = 0
  /** Whether the last item was the beginning of an object or array. */
  #hasOpened = false
  /** Index of the needed member of the object itself that is open; negative if it is not needed. */
  #openMember = -1

  constructor({
    read,
    noted = [],
    checked = {},
    refused = [],
    needsPlainNames = false,
  }: MemberRules) {
    this.#needsPlainNames = needsPlainNames
    this.#names = [...new Set([...read, ...noted])]
    this.#readCount = read.length
    this.#starts = new Int32Array(this.#names.length)
    this.#ends = new Int32Array(this.#names.length)
    this.#repeated = new Uint8Array(this.#names.length)
    for (const name of new Set([...this.#names, ...Object.keys(checked), ...refused])) {
      const index = this.#names.indexOf(name)
      const check = Object.hasOwn(checked, name) ? checked[name] : undefined
      const nameBytes = Buffer.from(name)
      const rule = { name, nameBytes, index, check, isRefused: refused.includes(name) }
      const rules = this.#rules[nameBytes.length] ?? []
      this.#rules[nameBytes.length] = [...rules, rule]
    }
  }

  /** Returns false if the bytes are not a JSON object, or must be parsed as a whole. */
  scan(bytes: Buffer): boolean {
    this.#bytes = bytes
    this.#starts.fill(-1)
    this.#repeated.fill(0)
    const from = afterSpace(bytes, 0)
    if (bytes[from] !== openBrace) return false
    return this.#scanFrom(bytes, from) === bytes.length
  }

  /** Returns the offset after the object at `from` and the space after it; negative if it is not accepted. */
  #scanFrom(bytes: Buffer, from: number): number {
    this.#depth = 0
    this.#nameCount = 0
    let at = from
    for (;;) {
      at = this.#readItem(bytes, at)
      if (at < 0) return -1
      const isInside = this.#hasOpened && bytes[at] !== this.#closers[this.#depth]
      if (isInside) continue
      at = this.#close(bytes, at)
      if (this.#depth === 0) return at
      if (bytes[at] !== comma) return -1
      at = afterSpace(bytes, at + 1)
    }
  }

  /** Reads a scalar or the beginning of an object or array, with its key if it has one, and space after it. */
  #readItem(bytes: Buffer, from: number): number {
    let at = from
    let rule: Rule | undefined
    if (this.#depth > 0 && this.#closers[this.#depth] === closeBrace) {
      const end = afterKey(bytes, at)
      if (end < 0 || !this.#isPlainName(at + 1, end - 1)) return -1
      rule = this.#ruleOf(bytes, at + 1, end - 1)
      at = afterSpace(bytes, end)
      if (bytes[at] !== colon || rule?.isRefused) return -1
      at = afterSpace(bytes, at + 1)
    }
    const member = this.#depth === 1 && rule !== undefined ? rule.index : -1
    if (member >= 0) this.#begin(member, at)
    const first = bytes[at]
    if (first === openBrace) return this.#open(bytes, at, member, closeBrace)
    if (first === openBracket) return this.#open(bytes, at, member, closeBracket)
    this.#hasOpened = false
    const end = afterScalar(bytes, at)
    if (end < 0 || (this.#depth > 1 && isRefusedBy(rule, bytes, at, end))) return -1
    if (member >= 0) this.#ends[member] = end
    return afterSpace(bytes, end)
  }

  /** Returns false if a name at [start, end) of the object must be plain, and is not, or occurs again. */
  #isPlainName(start: number, end: number): boolean {
    if (!this.#needsPlainNames || this.#depth > 1) return true
    const bytes = this.#bytes
    for (let at = start; at < end; at++) {
      const byte = bytes[at] ?? 0
      if (byte >= 0x80 || (byte >= 0x41 && byte <= 0x5a)) return false
    }
    const count = this.#nameCount
    if (count === maxMembers) return false
    for (let at = 0; at < count; at++) {
      const other = this.#nameStarts[at] ?? 0
      const otherEnd = this.#nameEnds[at] ?? 0
      if (otherEnd - other !== end - start) continue
      if (bytes.compare(bytes, other, otherEnd, start, end) === 0) return false
    }
    this.#nameStarts[count] = start
    this.#nameEnds[count] = end
    this.#nameCount = count + 1
    return true
  }

  /** If a member occurs again, the last one counts, as for `JSON.parse`. */
  #begin(member: number, at: number): void {
    if ((this.#starts[member] ?? -1) >= 0) this.#repeated[member] = 1
    this.#starts[member] = at
  }

  #open(bytes: Buffer, from: number, member: number, closer: number): number {
    if (this.#depth === maxDepth) return -1
    if (this.#depth === 1) this.#openMember = member
    this.#depth++
    this.#closers[this.#depth] = closer
    this.#hasOpened = true
    return afterSpace(bytes, from + 1)
  }

  /** Reads the ends of all objects and arrays that end here, and space after them. */
  #close(bytes: Buffer, from: number): number {
    let at = from
    while (this.#depth > 0 && bytes[at] === this.#closers[this.#depth]) {
      this.#depth--
      at++
      if (this.#depth === 1 && this.#openMember >= 0) this.#ends[this.#openMember] = at
      at = afterSpace(bytes, at)
    }
    return at
  }

  #ruleOf(bytes: Buffer, start: number, end: number): Rule | undefined {
    const rules = this.#rules[end - start]
    if (rules === undefined) return undefined
    for (const rule of rules) if (hasBytes(bytes, start, rule.nameBytes)) return rule
    return undefined
  }

  /** Returns the members to read that are present, parsed. */
  values(): JsonObject {
    const values: Record<string, unknown> = {}
    for (let member = 0; member < this.#readCount; member++) {
      const start = this.#starts[member] ?? -1
      const name = this.#names[member]
      if (start >= 0 && name !== undefined) {
        values[name] = parsedValue(this.#bytes, start, this.#ends[member] ?? start)
      }
    }
    return values
  }

  /** Returns whether the object has a member of this name that is neither null nor an empty array. */
  isFilled(name: string): boolean {
    const start = this.#startOf(name)
    if (start < 0) return false
    const first = this.#bytes[start]
    if (first === openBracket) {
      return this.#bytes[afterSpace(this.#bytes, start + 1)] !== closeBracket
    }
    return first !== letterN
  }

  /** Returns whether the object has a member of this name that is an array. */
  isArray(name: string): boolean {
    const start = this.#startOf(name)
    return start >= 0 && this.#bytes[start] === openBracket
  }

  /** Returns where the value of a member is; undefined unless the object has exactly one member of this name. */
  rangeOf(name: string): ByteRange | undefined {
    const member = this.#names.indexOf(name)
    const start = this.#starts[member] ?? -1
    if (start < 0 || this.#repeated[member] === 1) return undefined
    return { start, end: this.#ends[member] ?? start }
  }

  #startOf(name: string): number {
    return this.#starts[this.#names.indexOf(name)] ?? -1
  }
}

function isRefusedBy(rule: Rule | undefined, bytes: Buffer, start: number, end: number): boolean {
  const check = rule?.check
  return check !== undefined && bytes[start] === quote && !check(bytes, start + 1, end - 1)
}

/** Parses bytes [start, end), which are one JSON value. */
function parsedValue(bytes: Buffer, start: number, end: number): unknown {
  if (bytes[start] === quote && !hasByte(bytes, start, end, backslash)) {
    return bytes.toString('utf8', start + 1, end - 1)
  }
  return parseJson(bytes.toString('utf8', start, end))
}
