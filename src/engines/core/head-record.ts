import { writeLatin1 } from '../../ground/base/latin1.ts'
import { withoutRootDot } from '../../ground/base/root-dot.ts'
import {
  FIELD_INFO,
  FIELD_NAME,
  FIELD_SIZE,
  FIELD_VALUE,
  HEAD_AUTHORITY,
  HEAD_CONTENT_LENGTH,
  HEAD_END,
  HEAD_FIELD_COUNT,
  HEAD_FIELD_LIMIT,
  HEAD_FIELDS,
  HEAD_FLAGS,
  HEAD_HOP_COUNT,
  HEAD_HOST,
  HEAD_HOST_FIELD,
  HEAD_METHOD,
  HEAD_METHOD_ID,
  HEAD_MINOR,
  HEAD_PATH,
  HEAD_PORT,
  HEAD_QUERY,
  type HEAD_REASON,
  HEAD_RESUME,
  HEAD_ROUTE,
  HEAD_SCHEME,
  HEAD_SCOPE,
  HEAD_SIZE,
  HEAD_STATUS,
  HEAD_TARGET,
  type HEAD_UPGRADE,
  INFO_HOP,
} from './abi.ts'
import { CoreError } from './errors.ts'
import type { CoreInstance } from './instance.ts'

/** Offset (HEAD_*) of a span in the record, as passed to `start`, `stop` and `text`. */
export type HeadSpan =
  | typeof HEAD_METHOD
  | typeof HEAD_TARGET
  | typeof HEAD_PATH
  | typeof HEAD_QUERY
  | typeof HEAD_AUTHORITY
  | typeof HEAD_HOST
  | typeof HEAD_UPGRADE
  | typeof HEAD_REASON

/** A request that did not arrive as HTTP/1.1 bytes, for `HeadRecord.assign`. All text is Latin-1. */
export interface AssignedRequest {
  readonly method: string
  /** `host[:port]`; empty if there is none. */
  readonly authority: string
  readonly path: string
  /** The query without `?`; undefined if there is none. */
  readonly query: string | undefined
  readonly headers: Iterable<readonly [name: string, value: string]>
}

/** Length of the host without port and root dot; an IPv6 address keeps its brackets. */
function hostLength(authority: string): number {
  const colon = authority.indexOf(':', authority.startsWith('[') ? authority.indexOf(']') : 0)
  return withoutRootDot(colon < 0 ? authority : authority.slice(0, colon)).length
}

/**
 * The result of reading one head: numbers, and spans of memory. The start and the exclusive end of a
 * span are addresses in `core.bytes`; they are -1 if the part is absent. The record is valid until the
 * next read into it, or until the bytes that were read are overwritten. Accessors read memory; only
 * `text`, `name` and `value` create strings.
 */
export class HeadRecord {
  readonly address: number
  readonly maxFields: number
  readonly #core: CoreInstance
  #words: Int32Array
  readonly #base: number
  readonly #textSize: number
  #text = 0
  #written = 0

  /** Call `IoCore.createHead` instead. */
  constructor(core: CoreInstance, maxFields: number, textBytes: number) {
    this.#core = core
    this.maxFields = maxFields
    this.#textSize = textBytes
    this.address = core.allocate(HEAD_SIZE + maxFields * FIELD_SIZE)
    this.#words = core.words
    this.#base = this.address >> 2
    this.#words.fill(-1, this.#base, this.#base + (HEAD_SIZE >> 2))
    this.#set(HEAD_FIELD_LIMIT, maxFields)
    this.#set(HEAD_FIELD_COUNT, 0)
  }

  #get(offset: number): number {
    return this.#words[this.#base + (offset >> 2)] ?? -1
  }

  #set(offset: number, value: number): void {
    this.#words[this.#base + (offset >> 2)] = value
  }

  /** Address of the first byte after the empty line. */
  get end(): number {
    return this.#get(HEAD_END)
  }

  /** After INCOMPLETE: the `resume` to pass when the same head is read again with more bytes. */
  get resume(): number {
    return this.#get(HEAD_RESUME)
  }

  get status(): number {
    return this.#get(HEAD_STATUS)
  }

  /** Minor version x of HTTP/1.x. */
  get minor(): number {
    return this.#get(HEAD_MINOR)
  }

  /** FLAG_* bits of the head. */
  get flags(): number {
    return this.#get(HEAD_FLAGS)
  }

  /** METHOD_* of the method; 0 for methods without a constant. */
  get methodId(): number {
    return this.#get(HEAD_METHOD_ID)
  }

  /** SCHEME_* of a target in absolute form, otherwise 0. */
  get scheme(): number {
    return this.#get(HEAD_SCHEME)
  }

  /** Port of the authority; -1 if it has none. */
  get port(): number {
    return this.#get(HEAD_PORT)
  }

  /** Content-Length in bytes; -1 if there is no such field. */
  get contentLength(): number {
    return this.#core.floats[(this.address + HEAD_CONTENT_LENGTH) >> 3] ?? -1
  }

  get fieldCount(): number {
    return this.#get(HEAD_FIELD_COUNT)
  }

  /** Number of hop-by-hop fields. */
  get hopCount(): number {
    return this.#get(HEAD_HOP_COUNT)
  }

  /** Index of the Host field; -1 if there is none. */
  get hostField(): number {
    return this.#get(HEAD_HOST_FIELD)
  }

  /** Scope of the last match; -1 if no listener matched. */
  get scope(): number {
    return this.#get(HEAD_SCOPE)
  }

  /** Id of the route of the last match; -1 if no route matched. */
  get route(): number {
    return this.#get(HEAD_ROUTE)
  }

  /** Start address of a span; -1 if the part is absent. */
  start(span: HeadSpan): number {
    return this.#get(span)
  }

  /** End address of a span, exclusive. */
  stop(span: HeadSpan): number {
    return this.#get(span + 4)
  }

  nameStart(index: number): number {
    return this.#get(HEAD_FIELDS + index * FIELD_SIZE + FIELD_NAME)
  }

  nameEnd(index: number): number {
    return this.#get(HEAD_FIELDS + index * FIELD_SIZE + FIELD_NAME + 4)
  }

  valueStart(index: number): number {
    return this.#get(HEAD_FIELDS + index * FIELD_SIZE + FIELD_VALUE)
  }

  valueEnd(index: number): number {
    return this.#get(HEAD_FIELDS + index * FIELD_SIZE + FIELD_VALUE + 4)
  }

  /** INFO_* bits of a field; its low 8 bits are NAME_*. */
  info(index: number): number {
    return this.#get(HEAD_FIELDS + index * FIELD_SIZE + FIELD_INFO)
  }

  /** Whether this field must be removed when the message is forwarded (RFC 9110 7.6.1). */
  isHopByHop(index: number): boolean {
    return (this.info(index) & INFO_HOP) !== 0
  }

  /** Text of a span as Latin-1; undefined if the part is absent. */
  text(span: HeadSpan): string | undefined {
    const start = this.start(span)
    return start < 0 ? undefined : this.#core.bytes.toString('latin1', start, this.stop(span))
  }

  /** Name of a field as it was sent. */
  name(index: number): string {
    return this.#core.bytes.toString('latin1', this.nameStart(index), this.nameEnd(index))
  }

  /** Value of a field as Latin-1 text. */
  value(index: number): string {
    return this.#core.bytes.toString('latin1', this.valueStart(index), this.valueEnd(index))
  }

  /**
   * Fills the record for matching with a request of HTTP/2, or one that a policy has edited. Copies
   * the request's text to the record's own text space. Returns false if the text or the fields do not
   * fit.
   */
  assign(request: AssignedRequest): boolean {
    if (this.#textSize === 0) throw new CoreError(-3, 'assigning to a record without text space')
    if (this.#text === 0) this.#text = this.#core.allocate(this.#textSize)
    // The memory of an IoCore never grows; that of other instances may have grown since the last call.
    this.#words = this.#core.words
    this.#words.fill(-1, this.#base, this.#base + (HEAD_SIZE >> 2))
    this.#set(HEAD_FIELD_LIMIT, this.maxFields)
    this.#set(HEAD_FIELD_COUNT, 0)
    this.#set(HEAD_FLAGS, 0)
    this.#written = 0
    const { method, authority, path, query } = request
    const host = this.#text + method.length
    if (!this.#write(HEAD_METHOD, method) || !this.#write(HEAD_AUTHORITY, authority)) return false
    this.#set(HEAD_HOST, host)
    this.#set(HEAD_HOST + 4, host + hostLength(authority))
    if (!this.#write(HEAD_PATH, path)) return false
    if (query !== undefined && !(this.#write(HEAD_TARGET, '?') && this.#write(HEAD_QUERY, query))) {
      return false
    }
    this.#set(HEAD_TARGET, this.#get(HEAD_PATH))
    this.#set(HEAD_TARGET + 4, this.#text + this.#written)
    return this.#writeFields(request.headers)
  }

  #writeFields(headers: AssignedRequest['headers']): boolean {
    let count = 0
    for (const [name, value] of headers) {
      if (count === this.maxFields) return false
      const field = HEAD_FIELDS + count * FIELD_SIZE
      if (!this.#write(field + FIELD_NAME, name)) return false
      if (!this.#write(field + FIELD_VALUE, value)) return false
      this.#set(field + FIELD_INFO, 0)
      count++
    }
    this.#set(HEAD_FIELD_COUNT, count)
    return true
  }

  #write(span: number, text: string): boolean {
    if (this.#written + text.length > this.#textSize) return false
    const start = this.#text + this.#written
    writeLatin1(this.#core.bytes, text, start)
    this.#written += text.length
    this.#set(span, start)
    this.#set(span + 4, start + text.length)
    return true
  }
}
