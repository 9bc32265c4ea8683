import { type FieldKind, fieldKinds, type HeaderEntry, isPseudo } from './header-entry.ts'
import type { FieldSink } from './hpack-decoder.ts'

/** No spaces, so that it stays one word of a request line. */
const targetPattern = /^[\x21-\x7e\x80-\xff]+$/
const methodPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const schemePattern = /^[A-Za-z][A-Za-z0-9+.-]*$/
/** No userinfo (RFC 9113 8.3.1). */
const authorityPattern = /^[\x21-\x3f\x41-\x7e]+$/

/**
 * Whether a text is of a kind. What was sound last is known to be: methods, schemes and authorities
 * come again and again, and out of a table as the same string.
 */
function remembering(pattern: RegExp): (text: string) => boolean {
  let sound: string | undefined
  return (text) => {
    if (text === sound) return true
    if (!pattern.test(text)) return false
    sound = text
    return true
  }
}

const isMethod = remembering(methodPattern)
const isScheme = remembering(schemePattern)
const isAuthority = remembering(authorityPattern)

/**
 * The fields of one head as they are decoded, and the head of HTTP/1.1 that says the same: from
 * there on a request is read, checked and routed as any other. What makes a message malformed
 * (RFC 9113 8.1.1, 8.2, 8.3) is found here; nothing of such a message goes further.
 */
export class RequestFields implements FieldSink {
  readonly #limit: number
  isMalformed = false
  /** Octets by the measure of SETTINGS_MAX_HEADER_LIST_SIZE. */
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

  /** `limit`: octets beyond which fields are counted and no longer kept. */
  constructor(limit: number) {
    this.#limit = limit
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
    return this.size > this.#limit
  }

  /** The protocol of an extended CONNECT (RFC 8441 4). */
  get protocol(): string | undefined {
    return this.#protocol
  }

  get isConnect(): boolean {
    return this.#method === 'CONNECT'
  }

  onField(entry: HeaderEntry, isSensitive: boolean): void {
    this.size += entry.size
    if (this.size > this.#limit) return
    if (isPseudo(entry.kind)) this.#pseudo(entry.kind, entry.value)
    else this.#regular(entry, isSensitive)
  }

  #pseudo(kind: FieldKind, value: string): void {
    // Each at most once, and before all others.
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
      // One field again (RFC 9113 8.2.3).
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

  /** All that is asked of a request as a whole (RFC 9113 8.3.1); sets `isMalformed`. */
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
    // Two names for one target are an attempt to be read in two ways.
    return host === undefined || authority.toLowerCase() === host.toLowerCase()
  }

  get #hasSoundTarget(): boolean {
    const path = this.#path
    if (this.isConnect && this.#protocol === undefined) {
      // RFC 9113 8.5: an authority and nothing else.
      const others = (1 << fieldKinds.scheme) | (1 << fieldKinds.path)
      return (this.#seen & others) === 0 && this.#authority !== undefined
    }
    if (this.#protocol !== undefined && !this.isConnect) return false
    if (!isScheme(this.#scheme) || !targetPattern.test(path)) return false
    return path.startsWith('/') || (path === '*' && this.#method === 'OPTIONS')
  }

  /** The upgrade of HTTP/1.1 that asks for what this extended CONNECT does (RFC 8441 5). */
  upgradeText(protocol: string, key: string): string {
    const cookie = this.#cookies === '' ? '' : `cookie: ${this.#cookies}\r\n`
    const host = `host: ${this.#authority ?? this.#host ?? ''}\r\n`
    return (
      `GET ${this.#path} HTTP/1.1\r\n${host}${this.#lines}${cookie}` +
      `connection: upgrade\r\nupgrade: ${protocol}\r\nsec-websocket-key: ${key}\r\n\r\n`
    )
  }

  /** The head of HTTP/1.1. `hasBody`: the stream goes on behind it. */
  text(hasBody: boolean): string {
    const authority = this.#authority ?? this.#host
    const host = authority === undefined ? '' : `host: ${authority}\r\n`
    const cookie = this.#cookies === '' ? '' : `cookie: ${this.#cookies}\r\n`
    const coding = hasBody && !this.#hasLength ? 'transfer-encoding: chunked\r\n' : ''
    const start = `${this.#method} ${this.#path} HTTP/1.1\r\n`
    return `${start}${host}${this.#lines}${cookie}${coding}\r\n`
  }
}

/** The fields of trailers: regular ones only (RFC 9113 8.1). */
export class TrailerFields implements FieldSink {
  readonly #limit: number
  isMalformed = false
  size = 0
  lines = ''

  constructor(limit: number) {
    this.#limit = limit
  }

  onField(entry: HeaderEntry): void {
    this.size += entry.size
    if (this.size > this.#limit) this.isMalformed = true
    else if (isPseudo(entry.kind) || entry.kind === fieldKinds.bad) this.isMalformed = true
    else this.lines += entry.line
  }
}
