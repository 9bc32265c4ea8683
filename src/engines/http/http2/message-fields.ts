/** Converts decoded fields of heads and trailers to the equivalent HTTP/1.1 text. */
import { randomBytes } from 'node:crypto'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import type { HeadReader } from '../message/head-reader.ts'
import { tokenPattern } from '../message/header-fields.ts'
import { refusedRequest, unservedHead } from '../message/refusals.ts'
import { type FieldKind, fieldKinds, type HeaderEntry, isPseudo } from './header-entry.ts'
import type { FieldSink } from './hpack-decoder.ts'

/** Maximum number of octets of trailer fields. */
const trailerLimit = 8 * 1024
const statusPattern = /^[1-5][0-9]{2}$/
/** A target contains no spaces, so that it stays one word of the request line. */
const targetPattern = /^[\x21-\x7e\x80-\xff]+$/
const schemePattern = /^[A-Za-z][A-Za-z0-9+.-]*$/
/** An authority contains no userinfo (RFC 9113 8.3.1). */
const authorityPattern = /^[\x21-\x3f\x41-\x7e]+$/

/**
 * Returns a test that remembers the last valid text. Methods, schemes and authorities repeat, and an
 * HPACK table returns the same string each time.
 */
function cachingTest(pattern: RegExp): (text: string) => boolean {
  let valid: string | undefined
  return (text) => {
    if (text === valid) return true
    if (!pattern.test(text)) return false
    valid = text
    return true
  }
}

const isMethod = cachingTest(tokenPattern)
const isScheme = cachingTest(schemePattern)
const isAuthority = cachingTest(authorityPattern)

/**
 * Collects the fields of one request and writes them as a head of HTTP/1.1, which is then read, checked
 * and routed like any other. Malformed messages (RFC 9113 8.1.1, 8.2, 8.3) are refused here.
 */
export class RequestFields implements FieldSink {
  readonly limit: number
  isMalformed = false
  /** Octets as SETTINGS_MAX_HEADER_LIST_SIZE counts them. */
  size = 0
  #method = ''
  #scheme = ''
  #authority: string | undefined
  #host: string | undefined
  #path = ''
  #protocol: string | undefined
  #lines = ''
  #cookies = ''
  #hasLength = false
  #seen = 0
  #isPastPseudo = false
  sensitiveNames: Set<string> | undefined

  /** `limit`: octets beyond which fields are counted but not kept. */
  constructor(limit: number) {
    this.limit = limit
  }

  /** Forgets the last head. */
  start(): void {
    this.isMalformed = false
    this.size = 0
    this.#method = ''
    this.#scheme = ''
    this.#authority = undefined
    this.#host = undefined
    this.#path = ''
    this.#protocol = undefined
    this.#lines = ''
    this.#cookies = ''
    this.#hasLength = false
    this.#seen = 0
    this.#isPastPseudo = false
    this.sensitiveNames = undefined
  }

  get isTooLarge(): boolean {
    return this.size > this.limit
  }

  /** How many times the head has the maximum size, rounded down and at most 16. */
  get timesLimit(): number {
    return Math.min(Math.floor(this.size / this.limit), 16)
  }

  /** The protocol of an extended CONNECT (RFC 8441 4); undefined for other requests. */
  get protocol(): string | undefined {
    return this.#protocol
  }

  get isConnect(): boolean {
    return this.#method === 'CONNECT'
  }

  onField(entry: HeaderEntry, isSensitive: boolean): void {
    this.size += entry.size
    if (this.size > this.limit) return
    if (isPseudo(entry.kind)) this.#pseudo(entry.kind, entry.value)
    else this.#regular(entry, isSensitive)
  }

  #pseudo(kind: FieldKind, value: string): void {
    // A pseudo-header field must occur at most once, and before all regular fields.
    if (this.#isPastPseudo || (this.#seen & (1 << kind)) !== 0) this.isMalformed = true
    this.#seen |= 1 << kind
    if (kind === fieldKinds.method) this.#method = value
    else if (kind === fieldKinds.scheme) this.#scheme = value
    else if (kind === fieldKinds.authority) this.#authority = value
    else if (kind === fieldKinds.path) this.#path = value
    else if (kind === fieldKinds.protocol) this.#protocol = value
    else this.isMalformed = true
  }

  #regular({ kind, name, value, line }: HeaderEntry, isSensitive: boolean): void {
    this.#isPastPseudo = true
    if (isSensitive) {
      this.sensitiveNames ??= new Set()
      this.sensitiveNames.add(name)
    }
    if (kind === fieldKinds.regular) this.#lines += line
    else if (kind === fieldKinds.cookie) {
      // Cookie fields are joined (RFC 9113 8.2.3).
      this.#cookies = this.#cookies === '' ? value : `${this.#cookies}; ${value}`
    } else if (kind === fieldKinds.host) {
      if (this.#host !== undefined) this.isMalformed = true
      this.#host = value
    } else if (kind === fieldKinds.contentLength) {
      this.#hasLength = true
      this.#lines += line
    } else if (kind === fieldKinds.te && value.toLowerCase() === 'trailers') this.#lines += line
    else this.isMalformed = true
  }

  /** Checks the request as a whole (RFC 9113 8.3.1); sets `isMalformed`. */
  check(): void {
    const isSound = isMethod(this.#method) && this.#hasSoundAuthority && this.#hasSoundTarget
    if (!isSound) this.isMalformed = true
  }

  get #hasSoundAuthority(): boolean {
    const authority = this.#authority
    const host = this.#host
    if (host !== undefined && !isAuthority(host)) return false
    if (authority === undefined) return true
    if (!isAuthority(authority)) return false
    // If the names differed, two servers could understand two different requests.
    return host === undefined || authority.toLowerCase() === host.toLowerCase()
  }

  get #hasSoundTarget(): boolean {
    const path = this.#path
    if (this.isConnect && this.#protocol === undefined) {
      // A CONNECT has an authority, but neither scheme nor path (RFC 9113 8.5).
      const forbiddenKinds = (1 << fieldKinds.scheme) | (1 << fieldKinds.path)
      return (this.#seen & forbiddenKinds) === 0 && this.#authority !== undefined
    }
    if (this.#protocol !== undefined && !this.isConnect) return false
    if (!isScheme(this.#scheme) || !targetPattern.test(path)) return false
    return path.startsWith('/') || (path === '*' && this.#method === 'OPTIONS')
  }

  /** The HTTP/1.1 upgrade that is equivalent to this extended CONNECT (RFC 8441 5). */
  upgradeText(protocol: string, key: string): string {
    const cookie = this.#cookies === '' ? '' : `cookie: ${this.#cookies}\r\n`
    const host = `host: ${this.#authority ?? this.#host ?? ''}\r\n`
    return (
      `GET ${this.#path} HTTP/1.1\r\n${host}${this.#lines}${cookie}` +
      `connection: upgrade\r\nupgrade: ${protocol}\r\nsec-websocket-key: ${key}\r\n\r\n`
    )
  }

  /** The equivalent HTTP/1.1 head. `hasBody`: data follows on the stream. */
  text(hasBody: boolean): string {
    const authority = this.#authority ?? this.#host
    const host = authority === undefined ? '' : `host: ${authority}\r\n`
    const cookie = this.#cookies === '' ? '' : `cookie: ${this.#cookies}\r\n`
    const coding =
      hasBody && !this.#hasLength && !this.isConnect ? 'transfer-encoding: chunked\r\n' : ''
    const target = this.isConnect ? (authority ?? '') : this.#path
    const start = `${this.#method} ${target} HTTP/1.1\r\n`
    return `${start}${host}${this.#lines}${cookie}${coding}\r\n`
  }
}

/**
 * Passes a valid head in HTTP/1.1 form to the core; `reader` then describes it. Returns an error if
 * the request is refused. `isLast`: nothing follows on the stream.
 */
export function readHttp2Request(
  reader: HeadReader,
  limits: EngineLimits,
  fields: RequestFields,
  isLast: boolean,
): GatewayError | undefined {
  if (fields.isTooLarge) return new GatewayError('headers_too_large')
  const { protocol } = fields
  if (protocol !== undefined && protocol !== 'websocket') {
    return new GatewayError('method_not_allowed', 'CONNECT with an unknown protocol')
  }
  const text =
    protocol === undefined
      ? fields.text(!isLast)
      : fields.upgradeText(protocol, randomBytes(16).toString('base64'))
  const code = reader.readRequestText(text, fields.limit)
  return code < 0 ? refusedRequest(code) : unservedHead(reader, limits)
}

/** Collects the fields of a response and writes them as an HTTP/1.1 head (RFC 9113 8.3.2). */
export class ResponseFields implements FieldSink {
  readonly #limit: number
  isMalformed = false
  size = 0
  #status = ''
  #lines = ''

  /** `limit`: octets beyond which fields are counted but not kept. */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Forgets the last head. */
  start(): void {
    this.isMalformed = false
    this.size = 0
    this.#status = ''
    this.#lines = ''
  }

  /** Status of the response; 0 if there is none. */
  get status(): number {
    return Number(this.#status)
  }

  onField(entry: HeaderEntry): void {
    this.size += entry.size
    if (this.size > this.#limit) this.isMalformed = true
    else if (entry.kind === fieldKinds.status) {
      if (this.#status !== '' || this.#lines !== '') this.isMalformed = true
      this.#status = entry.value
    } else if (isPseudo(entry.kind) || entry.kind === fieldKinds.bad) this.isMalformed = true
    else this.#lines += entry.line
  }

  /** Whether this is a valid response head. HTTP/2 has no 101 (RFC 9113 8.6). */
  check(): boolean {
    return !this.isMalformed && statusPattern.test(this.#status) && this.#status !== '101'
  }

  text(): string {
    return `HTTP/1.1 ${this.#status} \r\n${this.#lines}\r\n`
  }
}

/** Collects trailer fields; pseudo-header fields are malformed there (RFC 9113 8.1). */
export class TrailerFields implements FieldSink {
  isMalformed = false
  size = 0
  lines = ''

  onField(entry: HeaderEntry): void {
    this.size += entry.size
    if (this.size > trailerLimit) this.isMalformed = true
    else if (isPseudo(entry.kind) || entry.kind === fieldKinds.bad) this.isMalformed = true
    else this.lines += entry.line
  }
}
