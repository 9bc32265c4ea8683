/**
 * Writes lines of the access log, as text or as JSON. Fields and their order are fixed. Fields without a
 * value are omitted. Lines without changes of a policy are built by hand, without an object or serializer
 * per request.
 */
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { ServerStream } from '../../engine/contracts/streams.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { AttributeChanges, AttributeValue } from '../../exchange/observe.ts'
import {
  type Address,
  addressText,
  eachField,
  eachStreamField,
  protocolOf,
  quote,
  statusOf,
  word,
} from './access-fields.ts'
import type { AccessRecord, StreamRecord, VisitField } from './types.ts'

export type AccessLogFormat = 'text' | 'json'

type Write = (name: string, value: string | number, isFree: boolean) => string

interface LineParts {
  /** Returns the start of a line, before its fields. */
  begin(time: string): string
  readonly end: string
  readonly write: Write
  /** Writes a field that a policy adds. */
  readonly writeAdded: (name: string, value: AttributeValue) => string
  /** Writes all fields of a request, if no policy changes them. */
  fields(exchange: ServerExchange, access: AccessRecord): string
}

/** This runs for each field of a line, so it makes no function or iterator. */
function isReplaced(added: readonly (readonly [string, unknown])[], name: string): boolean {
  for (let at = 0; at < added.length; at++) if (added[at]?.[0] === name) return true
  return false
}

/** Writes whole lines, including their line feed. */
class LineFormat {
  readonly #parts: LineParts

  constructor(parts: LineParts) {
    this.#parts = parts
  }

  request(time: string, exchange: ServerExchange, access: AccessRecord): string {
    const { fields, end } = this.#parts
    return this.#parts.begin(time) + fields(exchange, access) + end
  }

  /** Writes a line without the fields that the policy removes or replaces, and with those that it adds. */
  shaped(
    time: string,
    exchange: ServerExchange,
    access: AccessRecord,
    changes: AttributeChanges,
  ): string {
    const { write, writeAdded, end } = this.#parts
    const added = changes.added(exchange)
    let line = this.#parts.begin(time)
    eachField(access, exchange, (name, value, isFree) => {
      if (changes.removed.has(name) || isReplaced(added, name)) return
      if (value !== undefined && value !== '') line += write(name, value, isFree)
    })
    for (const [name, value] of added) line += writeAdded(name, value)
    return line + end
  }

  /** Writes the line of a connection whose request head could not be read. */
  badHead(time: string, source: Address, error: GatewayError, protocol: 'http' | 'https'): string {
    return this.#line(time, (visit) => {
      visit('src.addr', addressText(source), false)
      visit('http.status', error.row.status, false)
      visit('protocol', protocol, false)
      visit('error', error.message, true)
      visit('reason', error.row.reason, false)
      visit('duration', '0ms', false)
    })
  }

  stream(time: string, stream: ServerStream, access: StreamRecord): string {
    return this.#line(time, (visit) => eachStreamField(access, stream, visit))
  }

  #line(time: string, visitAll: (visit: VisitField) => void): string {
    let line = this.#parts.begin(time)
    visitAll((name, value, isFree) => {
      if (value !== undefined && value !== '') line += this.#parts.write(name, value, isFree)
    })
    return line + this.#parts.end
  }
}

/** Returns a function that caches the text of the last value, because few values occur and they repeat. */
function cachedWord(name: string): (value: string | undefined) => string {
  let last: string | undefined
  let text = ''
  return (value) => {
    if (value !== last) {
      text = word(name, value)
      last = value
    }
    return text
  }
}

/**
 * Returns a function that caches the text of the last listener, route and endpoint, which repeat together.
 */
function cachedPlaceWords(): (access: AccessRecord) => string {
  let last: AccessRecord | undefined
  let text = ''
  return (access) => {
    const isSame =
      last !== undefined &&
      access.endpoint === last.endpoint &&
      access.rule === last.rule &&
      access.route === last.route &&
      access.listener === last.listener &&
      access.gateway === last.gateway
    if (isSame) return text
    last = access
    const { gateway, listener, rule, route, endpoint } = access
    text =
      word('gateway', gateway) +
      word('listener', listener) +
      word('route_rule', rule) +
      word('route', route) +
      word('endpoint', endpoint)
    return text
  }
}

const words = {
  place: cachedPlaceWords(),
  method: cachedWord('http.method'),
  host: cachedWord('http.host'),
}

/** Writes the fields of the backend's kind. Most requests have none. */
function recordText({ record }: AccessRecord, write: Write): string {
  if (record === undefined) return ''
  let text = ''
  record.eachField((name, value, isFree) => {
    if (value !== undefined && value !== '') text += write(name, value, isFree)
  })
  return text
}

const writeWord: Write = (name, value, isFree) => {
  if (typeof value === 'number') return ` ${name}=${value}`
  return isFree ? ` ${name}=${quote(value)}` : word(name, value)
}

/** Writes a name or value from a policy. It is quoted if it contains white space, `"` or `=`. */
const addedWord = (text: string): string =>
  /[\s"=]/.test(text) ? quote(text) : word('', text).slice(2)

const textFormat = new LineFormat({
  begin: (time) => `${time}\tinfo\trequest`,
  end: '\n',
  write: writeWord,
  writeAdded(name, value) {
    const text = typeof value === 'string' ? value : jsonText(value)
    const isData = typeof value === 'object'
    return ` ${addedWord(name)}=${isData ? quote(text) : text === '' ? '""' : addedWord(text)}`
  },
  fields(exchange, access) {
    const status = statusOf(exchange, access)
    return (
      words.place(access) +
      ` src.addr=${addressText(exchange.source)}` +
      word('src.identity', access.identity) +
      words.method(access.method) +
      words.host(access.host) +
      word('http.path', access.path) +
      ` http.version=HTTP/${exchange.request.version}` +
      (status === 0 ? '' : ` http.status=${status}`) +
      (access.grpcStatus === undefined ? '' : ` grpc.status=${access.grpcStatus}`) +
      word('trace.id', access.traceId) +
      word('span.id', access.spanId) +
      word('jwt.sub', access.subject) +
      ` protocol=${protocolOf(access)}` +
      recordText(access, writeWord) +
      (access.retries === 0 ? '' : ` retry.attempt=${access.retries}`) +
      (access.error === undefined ? '' : ` error=${quote(access.error)}`) +
      (access.reason === 'Upstream' ? '' : word('reason', access.reason)) +
      ` duration=${Math.trunc(access.durationMs)}ms`
    )
  },
})

/** Returns the JSON text of a value. Integers keep all their digits. */
function jsonText(value: AttributeValue): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'string') return quote(value)
  if (typeof value === 'number') return Number.isFinite(value) ? `${value}` : `"${value}"`
  if (typeof value === 'boolean') return `${value}`
  if (Array.isArray(value)) return `[${value.map(jsonText).join(',')}]`
  const members = Object.entries(value).map(([name, item]) => `${quote(name)}:${jsonText(item)}`)
  return `{${members.join(',')}}`
}

const writeMember = (name: string, value: AttributeValue): string =>
  `,${quote(name)}:${jsonText(value)}`

const member = (name: string, value: string | undefined): string =>
  value === undefined || value === '' ? '' : `,"${name}":${quote(value)}`

const jsonFormat = new LineFormat({
  begin: (time) => `{"level":"info","time":"${time}","scope":"request"`,
  end: '}\n',
  write: writeMember,
  writeAdded: writeMember,
  fields(exchange, access) {
    const status = statusOf(exchange, access)
    return (
      member('gateway', access.gateway) +
      member('listener', access.listener) +
      member('route_rule', access.rule) +
      member('route', access.route) +
      member('endpoint', access.endpoint) +
      `,"src.addr":"${addressText(exchange.source)}"` +
      member('src.identity', access.identity) +
      member('http.method', access.method) +
      member('http.host', access.host) +
      member('http.path', access.path) +
      `,"http.version":"HTTP/${exchange.request.version}"` +
      (status === 0 ? '' : `,"http.status":${status}`) +
      (access.grpcStatus === undefined ? '' : `,"grpc.status":${access.grpcStatus}`) +
      member('trace.id', access.traceId) +
      member('span.id', access.spanId) +
      member('jwt.sub', access.subject) +
      `,"protocol":"${protocolOf(access)}"` +
      recordText(access, writeMember) +
      (access.retries === 0 ? '' : `,"retry.attempt":${access.retries}`) +
      member('error', access.error) +
      (access.reason === 'Upstream' ? '' : member('reason', access.reason)) +
      `,"duration":"${Math.trunc(access.durationMs)}ms"`
    )
  },
})

export const lineFormats: Readonly<Record<AccessLogFormat, LineFormat>> = {
  text: textFormat,
  json: jsonFormat,
}

/**
 * Returns the line of an exchange with the changes of the policy; undefined if the policy skips the
 * exchange.
 */
export function requestLine(
  format: LineFormat,
  clock: { at(monotonicMs: number): string },
  exchange: ServerExchange,
  access: AccessRecord,
): string | undefined {
  const { accessLog } = access
  if (accessLog?.accepts(exchange) === false) return undefined
  const time = clock.at(exchange.endedAt)
  return accessLog?.changes === undefined
    ? format.request(time, exchange, access)
    : format.shaped(time, exchange, access, accessLog.changes)
}
