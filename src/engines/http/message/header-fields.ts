import { latin1Text } from '../../../ground/base/latin1.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { FieldPair, HeaderFields } from '../../../ground/exchange/exchange.ts'
import { foldCase, isSameName, lowerCase } from '../../../ground/exchange/field-case.ts'
import { type FieldName, fieldName } from './field-names.ts'
import type { HeadOutput } from './head-output.ts'
import { type HeadReader, infoHop, infoName, type NameBits, nameBit } from './head-reader.ts'

/** Count of numbers that describe one field: name start and end, value start and end, info. */
const stride = 5

/** A field name or a method (RFC 9110 5.6.2). */
export const tokenPattern: RegExp = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/

/** Fields that the engine writes itself; edits to them are ignored. */
const engineFields = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'proxy-connection',
  'te',
  'transfer-encoding',
  'upgrade',
])

/**
 * Valid names that are neither Host nor one of the engine's fields, with their last valid value.
 * Configuration sets most fields, and the same ones on every message.
 */
const ordinaryFields = new Map<string, { lastValue: string }>()
const maxOrdinaryFields = 256

/**
 * Checks that a field can be sent as one line (RFC 9110 5.1, 5.5).
 * @throws GatewayError filter_failed
 */
export function checkField(name: string, value: string): void {
  const known = ordinaryFields.get(name)
  if (known?.lastValue === value) return
  if (known === undefined && !tokenPattern.test(name)) {
    throw new GatewayError('filter_failed', 'bad header name')
  }
  if (!valuePattern.test(value)) throw new GatewayError('filter_failed', `bad value of ${name}`)
  if (known !== undefined) known.lastValue = value
}

/** Adds a value to those of a field that were found before. */
function withValue(found: string | string[] | undefined, value: string): string | string[] {
  if (found === undefined) return value
  if (typeof found === 'string') return [found, value]
  found.push(value)
  return found
}

/**
 * The fields of one head: spans of its bytes, and a list of edits. Strings are created only for fields
 * that are read. Without edits the head is forwarded as it was received.
 *
 * Hop-by-hop fields and those in `hidden` belong to the engine and are not visible to readers.
 */
export class FieldList implements HeaderFields {
  #bytes: Buffer = Buffer.alloc(0)
  /** Offset of the head in `#bytes`; spans are relative to it. */
  #base = 0
  #spans = new Int32Array(32 * stride)
  #count = 0
  /** Offset of the line after the last field, relative to the head. */
  #end = 0
  readonly #hidden: NameBits
  #removed: Uint8Array | undefined
  #removedCount = 0
  /** The fields that were set or added: name, value, name, value, and so on. */
  readonly #added: string[] = []
  /** Number of valid entries of `#added`, since setting the length of an array is slow. */
  #addedCount = 0

  readonly #host: { authority: string } | undefined

  /** If `host` is set, the Host field is its `authority` and not a field of this list. */
  constructor(hidden: NameBits, host?: { authority: string }) {
    this.#hidden = hidden
    this.#host = host
  }

  /** Loads the fields of the head that the reader has just read from `bytes` at `base`. */
  load(reader: HeadReader, bytes: Buffer, base: number): void {
    this.reset()
    this.#bytes = bytes
    this.#base = base
    const count = reader.fieldCount
    if (count * stride > this.#spans.length) this.#spans = new Int32Array(count * stride)
    reader.copyFields(this.#spans)
    this.#count = count
    this.#end = reader.headLength - 2
  }

  /** Called when the same head has moved to other memory. */
  relocate(bytes: Buffer, base: number): void {
    this.#bytes = bytes
    this.#base = base
  }

  /** Removes all fields and edits. */
  reset(): void {
    this.#count = 0
    this.#addedCount = 0
    if (this.#removedCount > 0) {
      this.#removed?.fill(0)
      this.#removedCount = 0
    }
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  get base(): number {
    return this.#base
  }

  get spans(): Int32Array {
    return this.#spans
  }

  get count(): number {
    return this.#count
  }

  get(name: string): string | undefined {
    for (let index = 0; index < this.#count; index++) {
      if (this.#isVisible(index) && this.#isNamed(index, name)) return this.#value(index)
    }
    for (let at = 0; at < this.#addedCount; at += 2) {
      if (isSameName(this.#added[at] ?? '', name)) return this.#added[at + 1]
    }
    return undefined
  }

  /** Returns the value of a received field with this known name, also if the field belongs to the engine. */
  knownValue(name: number): string | undefined {
    for (let index = 0; index < this.#count; index++) {
      if ((this.#span(index, 4) & infoName) === name) return this.#value(index)
    }
    return undefined
  }

  getAll(name: string): string[] {
    const found = this.lines(name)
    return typeof found === 'string' ? [found] : [...(found ?? [])]
  }

  lines(name: string): string | readonly string[] | undefined {
    let found: string | string[] | undefined
    for (let index = 0; index < this.#count; index++) {
      if (this.#isVisible(index) && this.#isNamed(index, name)) {
        found = withValue(found, this.#value(index))
      }
    }
    for (let at = 0; at < this.#addedCount; at += 2) {
      if (isSameName(this.#added[at] ?? '', name)) {
        found = withValue(found, this.#added[at + 1] ?? '')
      }
    }
    return found
  }

  bytesOf(name: string): Buffer | undefined {
    let found = -1
    for (let index = 0; index < this.#count; index++) {
      if (!this.#isVisible(index) || !this.#isNamed(index, name)) continue
      if (found >= 0) return undefined
      found = index
    }
    for (let at = 0; at < this.#addedCount; at += 2) {
      if (isSameName(this.#added[at] ?? '', name)) return undefined
    }
    if (found < 0) return undefined
    const base = this.#base
    return this.#bytes.subarray(base + this.#span(found, 2), base + this.#span(found, 3))
  }

  has(name: string): boolean {
    for (let index = 0; index < this.#count; index++) {
      if (this.#isVisible(index) && this.#isNamed(index, name)) return true
    }
    for (let at = 0; at < this.#addedCount; at += 2) {
      if (isSameName(this.#added[at] ?? '', name)) return true
    }
    return false
  }

  set(name: string, value: string): void {
    checkField(name, value)
    if (this.#isTaken(name, value)) return
    this.#drop(name)
    this.#append(name, value)
  }

  add(name: string, value: string): void {
    checkField(name, value)
    if (this.#isTaken(name, value)) return
    this.#append(name, value)
  }

  remove(name: string): void {
    if (engineFields.has(lowerCase(name))) return
    this.#drop(name)
  }

  /** Lower-case names, without those that `isWanted` leaves out, of the fields that remain as received. */
  receivedNames(isWanted: (name: string) => boolean): string[] {
    const names: string[] = []
    for (let index = 0; index < this.#count; index++) {
      if (!this.#isVisible(index)) continue
      const name = this.#lowerName(index)
      if (isWanted(name) && !names.includes(name)) names.push(name)
    }
    return names
  }

  /**
   * Removes received fields by their lower-case names, and returns them. Fields of the same name that
   * were set or added since are kept.
   */
  takeReceived(isTaken: (name: string) => boolean): FieldPair[] {
    let taken: FieldPair[] | undefined
    for (let index = 0; index < this.#count; index++) {
      if (!this.#isVisible(index)) continue
      const name = this.#lowerName(index)
      if (!isTaken(name)) continue
      const pair = [name, this.#value(index)] as const
      if (taken === undefined) taken = [pair]
      else taken.push(pair)
      this.#remove(index)
    }
    return taken ?? []
  }

  entries(): FieldPair[] {
    // An array that grows would have room for more than most messages have.
    const pairs = new Array<FieldPair>(this.#count + this.#addedCount / 2)
    let count = 0
    for (let index = 0; index < this.#count; index++) {
      if (this.#isVisible(index)) pairs[count++] = [this.#name(index), this.#value(index)]
    }
    for (let at = 0; at < this.#addedCount; at += 2) {
      pairs[count++] = [this.#added[at] ?? '', this.#added[at + 1] ?? '']
    }
    pairs.length = count
    return pairs
  }

  /**
   * Writes the field lines to send, without hop-by-hop fields and those in `dropped`. Adjacent lines
   * are copied together. If `from` >= 0, the copy starts there, at a start line that is sent
   * unchanged.
   */
  writeTo(out: HeadOutput, dropped: NameBits, from: number): void {
    let start = from
    for (let index = 0; index < this.#count; index++) {
      if (this.#isSent(index, dropped)) {
        if (start < 0) start = this.#span(index, 0)
      } else if (start >= 0) {
        out.appendBytes(this.#bytes, this.#base + start, this.#base + this.#span(index, 0))
        start = -1
      }
    }
    if (start >= 0) out.appendBytes(this.#bytes, this.#base + start, this.#base + this.#end)
    for (let at = 0; at < this.#addedCount; at += 2) {
      out.appendText(this.#added[at] ?? '')
      out.appendText(': ')
      out.appendText(this.#added[at + 1] ?? '')
      out.appendText('\r\n')
    }
  }

  /** Handles fields that are not in this list: Host, and those that the engine writes itself. */
  #isTaken(name: string, value: string): boolean {
    if (ordinaryFields.has(name)) return false
    const lower = name.toLowerCase()
    if (this.#host !== undefined && lower === 'host') {
      this.#host.authority = value
      return true
    }
    if (engineFields.has(lower)) return true
    const isOrdinary = lower !== 'host' && ordinaryFields.size < maxOrdinaryFields
    if (isOrdinary) ordinaryFields.set(name, { lastValue: value })
    return false
  }

  #isSent(index: number, dropped: NameBits): boolean {
    const info = this.#span(index, 4)
    if ((info & infoHop) !== 0 || (nameBit(info & infoName) & dropped) !== 0) return false
    return this.#removedCount === 0 || this.#removed?.[index] !== 1
  }

  #isVisible(index: number): boolean {
    return this.#isSent(index, this.#hidden)
  }

  #isNamed(index: number, name: string): boolean {
    const start = this.#span(index, 0)
    if (this.#span(index, 1) - start !== name.length) return false
    const offset = this.#base + start
    for (let at = 0; at < name.length; at++) {
      const byte = this.#bytes[offset + at]
      if (byte === undefined || foldCase(byte) !== foldCase(name.charCodeAt(at))) return false
    }
    return true
  }

  #append(name: string, value: string): void {
    this.#added[this.#addedCount] = name
    this.#added[this.#addedCount + 1] = value
    this.#addedCount += 2
  }

  #drop(name: string): void {
    for (let index = 0; index < this.#count; index++) {
      if (this.#isVisible(index) && this.#isNamed(index, name)) this.#remove(index)
    }
    for (let at = this.#addedCount - 2; at >= 0; at -= 2) {
      if (!isSameName(this.#added[at] ?? '', name)) continue
      this.#added.splice(at, 2)
      this.#addedCount -= 2
    }
  }

  #remove(index: number): void {
    if (this.#removed === undefined || this.#removed.length < this.#count) {
      const grown = new Uint8Array(Math.max(64, this.#count))
      if (this.#removed !== undefined) grown.set(this.#removed)
      this.#removed = grown
    }
    this.#removed[index] = 1
    this.#removedCount++
  }

  #name(index: number): string {
    return this.#fieldName(index).text
  }

  #lowerName(index: number): string {
    return this.#fieldName(index).lower
  }

  #fieldName(index: number): FieldName {
    const base = this.#base
    return fieldName(this.#bytes, base + this.#span(index, 0), base + this.#span(index, 1))
  }

  #value(index: number): string {
    const base = this.#base
    return latin1Text(this.#bytes, base + this.#span(index, 2), base + this.#span(index, 3))
  }

  #span(index: number, part: number): number {
    return this.#spans[index * stride + part] ?? 0
  }
}
