import { latin1Text } from '../../../ground/base/latin1.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { HeaderFields, RequestHead } from '../../../ground/exchange/exchange.ts'
import {
  FLAG_ABSOLUTE_FORM,
  FLAG_CHUNKED,
  FLAG_EXPECT_CONTINUE,
  FLAG_PERSISTENT,
  FLAG_TE_TRAILERS,
  FLAG_UPGRADE,
  HEAD_AUTHORITY,
  HEAD_HOST_FIELD,
  HEAD_METHOD,
  HEAD_PATH,
  HEAD_QUERY,
  HEAD_UPGRADE,
  METHOD_CONNECT,
  METHOD_GET,
  METHOD_HEAD,
  METHOD_POST,
  NAME_CONTENT_LENGTH,
  NAME_EXPECT,
  NAME_HOST,
  NAME_TRAILER,
} from '../../core/index.ts'
import { type FramingFields, type HeadOutput, HeadText } from './head-output.ts'
import { type HeadReader, nameBit } from './head-reader.ts'
import { FieldList, tokenPattern } from './header-fields.ts'

const nothing = Buffer.alloc(0)
const hidden = nameBit(NAME_HOST) | nameBit(NAME_EXPECT)
const hostBit = nameBit(NAME_HOST)
const lengthBit = nameBit(NAME_CONTENT_LENGTH)
const expectBit = nameBit(NAME_EXPECT)
const trailerBit = nameBit(NAME_TRAILER)

const connect = /^connect$/i
/** These begin a query and a fragment. */
const notInPath = /[?#]/
const targetPattern = /^[\x21-\x7e\x80-\xff]*$/
const authorityPattern = /^[\x21-\x2e\x30-\x7e]+$/
/** Matches protocols that are HTTP itself, a draft of it, or HTTP over TLS (RFC 2817). */
const httpUpgrade = /(?:^|[\s,])(?:h[23]|http\/|tls\b)/i

/** Names of known methods; sharing these constants avoids a new string for common methods. */
const methodNames = new Map([
  [METHOD_GET, 'GET'],
  [METHOD_HEAD, 'HEAD'],
  [METHOD_POST, 'POST'],
])

/** Maximum number of bytes of a head that is copied without a new buffer. */
const ownSize = 2048

/** Start and end of a part of the head, relative to the start of the head; both are -1 if it is absent. */
interface Span {
  start: number
  end: number
}

/**
 * A request head as the data plane reads and edits it, and as it is written to an upstream. Parts stay
 * bytes until they are read.
 */
export class RequestHeadView implements RequestHead {
  readonly fields: FieldList = new FieldList(hidden, this)
  scheme: 'http' | 'https' = 'http'
  /** Whether the method is HEAD now (`isHead`), and whether the client sent HEAD (`wasHead`). */
  isHead = false
  wasHead = false
  contentLength = -1
  /** Whether the request arrived over HTTP/2. */
  isHttp2 = false
  /** Whether the request is a CONNECT, perhaps an extended one (RFC 8441 4), so that every 2xx opens the tunnel. */
  wasConnect = false
  /** Lower-case names of fields that must not enter an HPACK table (RFC 7541 7.1.3). */
  sensitiveNames: ReadonlySet<string> | undefined
  #flags = 0
  #minor = 1
  #bytes: Buffer = nothing
  #own: Buffer | undefined
  #methodId = 0
  readonly #methodSpan: Span = { start: -1, end: -1 }
  readonly #pathSpan: Span = { start: -1, end: -1 }
  readonly #querySpan: Span = { start: -1, end: -1 }
  readonly #authoritySpan: Span = { start: -1, end: -1 }
  readonly #upgradeSpan: Span = { start: -1, end: -1 }
  #method: string | undefined
  #path: string | undefined
  #query: string | undefined
  #queryKnown = false
  #authority: string | undefined
  #lineEdited = false
  #authorityEdited = false
  #hasHost = false

  /** Copies the request head that the reader has just read from `bytes` at `base`. */
  load(reader: HeadReader, bytes: Buffer, base: number): void {
    const size = reader.headLength
    this.#bytes = this.#room(size)
    bytes.copy(this.#bytes, 0, base, base + size)
    this.isHttp2 = false
    this.sensitiveNames = undefined
    this.#flags = reader.flags
    this.#minor = reader.minor
    this.#methodId = reader.methodId
    this.wasConnect = this.isConnect
    this.contentLength = reader.contentLength
    this.wasHead = reader.methodId === METHOD_HEAD
    this.isHead = this.wasHead
    reader.span(HEAD_METHOD, this.#methodSpan)
    reader.span(HEAD_PATH, this.#pathSpan)
    reader.span(HEAD_QUERY, this.#querySpan)
    reader.span(HEAD_AUTHORITY, this.#authoritySpan)
    reader.span(HEAD_UPGRADE, this.#upgradeSpan)
    this.#method = undefined
    this.#path = undefined
    this.#query = undefined
    this.#queryKnown = false
    this.#authority = undefined
    this.#lineEdited = false
    this.#authorityEdited = false
    this.#hasHost = reader.word(HEAD_HOST_FIELD) >= 0
    // Forwarding from the bytes that were read is cheaper than from the copy, as long as they stay.
    const stays = bytes !== reader.textBytes || base !== reader.textStart
    this.fields.load(reader, stays ? bytes : this.#bytes, stays ? base : 0)
  }

  /** Switches to the copy of the head, because the bytes that were read are about to be overwritten. */
  detach(): void {
    this.fields.relocate(this.#bytes, 0)
  }

  /** Returns a buffer for a head. Heads of usual size share one buffer of this object. */
  #room(size: number): Buffer {
    if (size > ownSize) return Buffer.allocUnsafeSlow(size)
    this.#own ??= Buffer.allocUnsafeSlow(ownSize)
    return this.#own
  }

  /** Releases the bytes of the head. */
  release(): void {
    this.#bytes = nothing
    this.fields.relocate(nothing, 0)
    this.fields.reset()
  }

  get headers(): HeaderFields {
    return this.fields
  }

  get version(): string {
    if (this.isHttp2) return '2'
    return this.#minor === 0 ? '1.0' : '1.1'
  }

  /** Whether the request asks for a tunnel to its authority (RFC 9110 9.3.6). */
  get isConnect(): boolean {
    return this.#methodId === METHOD_CONNECT
  }

  get isHttp10(): boolean {
    return this.#minor === 0
  }

  get isChunked(): boolean {
    return (this.#flags & FLAG_CHUNKED) !== 0
  }

  /** How the body is framed. A request without framing fields has no body (RFC 9112 6.3). */
  get bodyKind(): 'none' | 'length' | 'chunked' {
    if (this.isChunked) return 'chunked'
    return this.contentLength >= 0 ? 'length' : 'none'
  }

  get hasBody(): boolean {
    return this.contentLength > 0 || this.isChunked
  }

  /** Whether the client wants to reuse the connection. */
  get isPersistent(): boolean {
    return (this.#flags & FLAG_PERSISTENT) !== 0
  }

  get expectsContinue(): boolean {
    return (this.#flags & FLAG_EXPECT_CONTINUE) !== 0
  }

  get acceptsTrailers(): boolean {
    return (this.#flags & FLAG_TE_TRAILERS) !== 0
  }

  /**
   * The protocols that the client wants to switch to, if that can be forwarded. It cannot together
   * with a body, and HTTP is removed from the list, because requests in such a tunnel would pass no
   * policy.
   */
  get upgrade(): string | undefined {
    if ((this.#flags & FLAG_UPGRADE) === 0 || this.hasBody) return undefined
    const wanted = this.#slice(this.#upgradeSpan)
    if (wanted === undefined || !httpUpgrade.test(wanted)) return wanted
    const others = wanted.split(',').filter((protocol) => !httpUpgrade.test(protocol))
    return others.length === 0 ? undefined : others.join(',').trim()
  }

  get method(): string {
    this.#method ??= methodNames.get(this.#methodId) ?? this.#slice(this.#methodSpan) ?? ''
    return this.#method
  }

  set method(method: string) {
    // The response to a CONNECT would be a tunnel instead of a message (RFC 9110 9.3.6).
    if (!tokenPattern.test(method) || connect.test(method) || this.isConnect) {
      throw new GatewayError('filter_failed', 'the new method is not a token, or was or is CONNECT')
    }
    this.#method = method
    this.#lineEdited = true
    this.isHead = method === 'HEAD'
  }

  get authority(): string {
    this.#authority ??= this.#slice(this.#authoritySpan) ?? ''
    return this.#authority
  }

  set authority(authority: string) {
    if (!authorityPattern.test(authority))
      throw new GatewayError('filter_failed', 'the new host is not valid')
    this.#authority = authority
    this.#authorityEdited = true
  }

  get path(): string {
    if (this.#path === undefined) {
      const path = this.#slice(this.#pathSpan)
      this.#path = path === undefined || path === '' ? '/' : path
    }
    return this.#path
  }

  set path(path: string) {
    if (!targetPattern.test(path) || !path.startsWith('/') || notInPath.test(path)) {
      throw new GatewayError('filter_failed', 'the new path is not a valid path')
    }
    this.#path = path
    this.#lineEdited = true
  }

  get query(): string | undefined {
    if (!this.#queryKnown) {
      this.#query = this.#slice(this.#querySpan)
      this.#queryKnown = true
    }
    return this.#query
  }

  set query(query: string | undefined) {
    if (query !== undefined && (!targetPattern.test(query) || query.includes('#'))) {
      throw new GatewayError('filter_failed', 'the new query is not valid')
    }
    this.#query = query
    this.#queryKnown = true
    this.#lineEdited = true
  }

  /** The head for an HTTP/1.1 upstream, including its empty line. */
  text(framing: FramingFields, upgrade: string | undefined, expects = false): string {
    const out = new HeadText()
    this.writeTo(out, framing, upgrade, expects)
    return out.text
  }

  /** The head without the fields that frame the body, and without its empty line. */
  unframedText(): string {
    return this.text('none', undefined).slice(0, -2)
  }

  /** The field line that frames the body, to be added to a head without one. */
  framingLine(framing: FramingFields): string {
    if (this.isSentChunked(framing)) return 'transfer-encoding: chunked\r\n'
    const length = framing === 'as-is' ? this.contentLength : framing
    return typeof length === 'number' && length >= 0 ? `content-length: ${length}\r\n` : ''
  }

  /** Writes the head as `text` returns it. `expects`: asks the upstream for a 100 (Continue). */
  writeTo(
    out: HeadOutput,
    framing: FramingFields,
    upgrade: string | undefined,
    expects = false,
  ): void {
    const isAbsolute = (this.#flags & FLAG_ABSOLUTE_FORM) !== 0
    const keepsHost = !this.#authorityEdited && !isAbsolute && this.#hasHost
    const keepsLine = !this.#lineEdited && this.#minor === 1 && !isAbsolute
    let dropped = expectBit
    if (!keepsHost) dropped |= hostBit
    if (framing !== 'as-is') dropped |= lengthBit
    // A body whose length was decided here has no trailers.
    if (framing === 'none' || typeof framing === 'number') dropped |= trailerBit
    const keepsStart = keepsHost && keepsLine
    if (!keepsStart) this.#writeStartLine(out)
    if (!keepsHost) {
      out.appendText('host: ')
      out.appendText(this.authority)
      out.appendText('\r\n')
    }
    this.fields.writeTo(out, dropped, keepsStart ? this.#methodSpan.start : -1)
    const isCopied = framing === 'as-is' && !this.isChunked
    if (!isCopied) out.appendText(this.framingLine(framing))
    if ((this.#flags & FLAG_TE_TRAILERS) !== 0) out.appendText('te: trailers\r\nconnection: te\r\n')
    if (expects) out.appendText('expect: 100-continue\r\n')
    if (upgrade !== undefined) out.appendText(`connection: upgrade\r\nupgrade: ${upgrade}\r\n`)
    out.appendText('\r\n')
  }

  /** Whether the body is chunked if it is sent over HTTP/1.1. */
  isSentChunked(framing: FramingFields): boolean {
    return framing === 'chunked' || (framing === 'as-is' && this.isChunked)
  }

  /** Writes the parts one by one, because a text of all would have to be made first. */
  #writeStartLine(out: HeadOutput): void {
    const { query } = this
    out.appendText(this.method)
    out.appendText(' ')
    out.appendText(this.path)
    if (query !== undefined) {
      out.appendText('?')
      out.appendText(query)
    }
    out.appendText(' HTTP/1.1\r\n')
  }

  #slice(span: Span): string | undefined {
    if (span.start < 0) return undefined
    return latin1Text(this.#bytes, span.start, span.end)
  }
}
