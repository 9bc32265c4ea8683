/**
 * Finds the texts of a JSON document that paths name, and writes the document again with other texts. All bytes outside
 * of the changed texts stay as they are.
 */
import { isUtf8 } from 'node:buffer'
import { maxJsonDepth } from './parse.ts'
import { foldName, type JsonPath, type PathSegment } from './paths.ts'
import {
  afterScalar,
  afterSpace,
  afterString,
  backslash,
  colon,
  comma,
  isDigit,
  openBrace,
  openBracket,
  quote,
} from './syntax.ts'

/** A text at bytes [start, end) of a document. */
export interface PathText {
  readonly start: number
  readonly end: number
  /** The decoded string, or a number as it is written. */
  readonly value: string
  /** The lists of paths that name it: bit n is set for list n. */
  readonly lists: number
}

/** Thrown if bytes are not one JSON document in UTF-8. The message contains no part of the document. */
export class JsonDocumentError extends Error {
  override readonly name = 'JsonDocumentError'
}

const minus = 0x2d
const notJson = 'it is not JSON'
const none: readonly number[] = []

/**
 * Finds texts by up to 31 lists of paths. A path that ends at an object or an array names all texts inside, including
 * names of members. Every occurrence of a repeated name counts, and case does not matter in names.
 */
export class PathTexts {
  /** The segments of all paths, one path after the other, with `undefined` at the end of each. */
  readonly #segments: (PathSegment | undefined)[] = []
  /** The bit of the list of each path, by the index of the path's end in `#segments`. */
  readonly #ends: number[] = []
  readonly #rootStates: readonly number[]
  readonly #rootLists: number
  readonly #closers = new Uint8Array(maxJsonDepth + 1)
  /** By depth: the states and lists of the open object or array, and the index of the last item. */
  readonly #openStates: (readonly number[])[] = []
  readonly #openLists = new Int32Array(maxJsonDepth + 1)
  readonly #indexes = new Int32Array(maxJsonDepth + 1)
  /** The states and lists of the value that is read next. A state is the index of a segment that may follow. */
  #states: readonly number[] = none
  #lists = 0
  #depth = 0
  /** Whether the last item was the beginning of an object or array. */
  #hasOpened = false
  #found: PathText[] = []

  constructor(lists: readonly (readonly JsonPath[])[]) {
    const states: number[] = []
    let rootLists = 0
    for (const [list, paths] of lists.entries()) {
      for (const path of paths) {
        if (path.length === 0) rootLists |= 1 << list
        else states.push(this.#segments.length)
        for (const segment of path) this.#segments.push(segment)
        this.#ends[this.#segments.length] = 1 << list
        this.#segments.push(undefined)
      }
    }
    this.#rootStates = states
    this.#rootLists = rootLists
  }

  /** Returns the texts in the order of their offsets. @throws JsonDocumentError */
  find(bytes: Buffer): readonly PathText[] {
    if (!isUtf8(bytes)) throw new JsonDocumentError('it is not UTF-8')
    this.#found = []
    this.#states = this.#rootStates
    this.#lists = this.#rootLists
    this.#readDocument(bytes)
    return this.#found
  }

  #readDocument(bytes: Buffer): void {
    this.#depth = 0
    let at = afterSpace(bytes, lengthOfMark(bytes))
    for (;;) {
      at = this.#readItem(bytes, at)
      const isInside = this.#hasOpened && bytes[at] !== this.#closers[this.#depth]
      if (!isInside) at = this.#close(bytes, at)
      if (this.#depth === 0) break
      if (!isInside && bytes[at] !== comma) throw new JsonDocumentError(notJson)
      at = this.#startMember(bytes, isInside ? at : afterSpace(bytes, at + 1))
    }
    if (at !== bytes.length) throw new JsonDocumentError('it is not one JSON document')
  }

  /** Reads a scalar or the beginning of an object or array, and space after it. */
  #readItem(bytes: Buffer, at: number): number {
    const first = bytes[at]
    this.#hasOpened = first === openBrace || first === openBracket
    if (first === openBrace || first === openBracket) {
      this.#open(first)
      return afterSpace(bytes, at + 1)
    }
    const end = afterScalar(bytes, at)
    if (end < 0) throw new JsonDocumentError(notJson)
    if (first === quote || first === minus || isDigit(first)) this.#note(bytes, at, end)
    return afterSpace(bytes, end)
  }

  #open(opener: number): void {
    const depth = ++this.#depth
    if (depth > maxJsonDepth) throw new JsonDocumentError('it is nested too deeply')
    // In ASCII, a closing bracket or brace is two after its opening one.
    this.#closers[depth] = opener + 2
    this.#openStates[depth] = this.#states
    this.#openLists[depth] = this.#lists
    this.#indexes[depth] = -1
  }

  /** Reads the ends of all objects and arrays that end here, and space after them. */
  #close(bytes: Buffer, from: number): number {
    let at = from
    while (this.#depth > 0 && bytes[at] === this.#closers[this.#depth]) {
      this.#depth--
      at = afterSpace(bytes, at + 1)
    }
    return at
  }

  /** Reads the name of a member, if there is one. Returns where its value begins. */
  #startMember(bytes: Buffer, start: number): number {
    const depth = this.#depth
    const states = this.#openStates[depth] ?? none
    this.#lists = this.#openLists[depth] ?? 0
    if (this.#closers[depth] !== openBrace + 2) {
      const index = (this.#indexes[depth] ?? 0) + 1
      this.#indexes[depth] = index
      if (states.length > 0) this.#step(states, undefined, index)
      else this.#states = none
      return start
    }
    const end = bytes[start] === quote ? afterString(bytes, start) : -1
    const at = end < 0 ? -1 : afterSpace(bytes, end)
    if (bytes[at] !== colon) throw new JsonDocumentError(notJson)
    if (this.#lists !== 0) this.#note(bytes, start, end)
    if (states.length > 0) this.#step(states, foldName(textAt(bytes, start, end)), undefined)
    else this.#states = none
    return afterSpace(bytes, at + 1)
  }

  /** Sets the states and lists of a member or item. */
  #step(states: readonly number[], name: string | undefined, index: number | undefined): void {
    const next: number[] = []
    for (const state of states) {
      const segment = this.#segments[state]
      if (segment === undefined) continue
      if (segment.isDeep && !next.includes(state)) next.push(state)
      const isAny = segment.name === undefined && segment.index === undefined
      const isNamed = segment.name !== undefined && segment.name === name
      if (!isAny && !isNamed && (segment.index === undefined || segment.index !== index)) continue
      this.#lists |= this.#ends[state + 1] ?? 0
      if (this.#segments[state + 1] !== undefined && !next.includes(state + 1)) next.push(state + 1)
    }
    this.#states = next
  }

  #note(bytes: Buffer, start: number, end: number): void {
    const lists = this.#lists
    if (lists !== 0) this.#found.push({ start, end, value: textAt(bytes, start, end), lists })
  }
}

const byteOrderMark = [0xef, 0xbb, 0xbf] as const

const lengthOfMark = (bytes: Buffer): number =>
  byteOrderMark.every((byte, at) => bytes[at] === byte) ? byteOrderMark.length : 0

/** Returns the decoded string, or the number as it is written, at bytes [start, end). */
function textAt(bytes: Buffer, start: number, end: number): string {
  if (bytes[start] !== quote) return bytes.toString('latin1', start, end)
  return bytes.subarray(start, end).includes(backslash)
    ? (JSON.parse(bytes.toString('utf8', start, end)) as string)
    : bytes.toString('utf8', start + 1, end - 1)
}

/** Returns the document with its texts replaced by these values. A number that changes becomes a string. */
export function withTexts(
  bytes: Buffer,
  texts: readonly PathText[],
  values: readonly string[],
): Buffer {
  const parts: Buffer[] = []
  let written = 0
  for (const [at, { start, end, value }] of texts.entries()) {
    const changed = values[at] ?? ''
    if (changed === value) continue
    parts.push(bytes.subarray(written, start), Buffer.from(JSON.stringify(changed)))
    written = end
  }
  return written === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(written)])
}
