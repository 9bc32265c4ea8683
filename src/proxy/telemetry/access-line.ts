/**
 * One line of the access log, as text or as JSON. The fields and their order are fixed; absent
 * values are left out. Lines are put together by hand: no object and no generic serialiser on the
 * path of every request.
 */
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { AttributeChanges } from '../../exchange/observe.ts'
import {
  protocolOf,
  shapedJson,
  shapedText,
  type Write,
  writeMember,
  writeWord,
} from './access-fields.ts'
import { type Address, addressText, quote, statusOf, word } from './access-text.ts'
import type { RequestFacts } from './types.ts'

export type AccessLogFormat = 'text' | 'json'

/** Makes one line, with its line feed. */
interface LineFormat {
  request(time: string, exchange: ServerExchange, facts: RequestFacts): string
  /** As `request`, shaped by a policy. */
  shaped(
    time: string,
    exchange: ServerExchange,
    facts: RequestFacts,
    changes: AttributeChanges,
  ): string
  /** A connection whose request head could not be read. */
  badHead(time: string, source: Address, error: GatewayError, protocol: 'http' | 'https'): string
}

/** A word whose values are few and come again: the last one is kept. */
function repeatedWord(name: string): (value: string | undefined) => string {
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

/** The place and the destination of a request: as for words, they come again together. */
function repeatedPlace(): (facts: RequestFacts) => string {
  let last: RequestFacts | undefined
  let text = ''
  return (facts) => {
    const isSame =
      last !== undefined &&
      facts.endpoint === last.endpoint &&
      facts.rule === last.rule &&
      facts.route === last.route &&
      facts.listener === last.listener &&
      facts.gateway === last.gateway
    if (isSame) return text
    last = facts
    const { gateway, listener, rule, route, endpoint } = facts
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
  place: repeatedPlace(),
  method: repeatedWord('http.method'),
  host: repeatedWord('http.host'),
}

export const quoted = (name: string, value: string | undefined): string =>
  value === undefined ? '' : ` ${name}=${quote(value)}`

/** The fields of the backend's kind; most requests have none. */
function recordText({ record }: RequestFacts, write: Write): string {
  if (record === undefined) return ''
  let text = ''
  record.eachField((name, value, isFree) => {
    if (value !== undefined && value !== '') text += write(name, value, isFree)
  })
  return text
}

const textFormat: LineFormat = {
  request(time, exchange, facts) {
    const status = statusOf(exchange, facts)
    return (
      `${time}\tinfo\trequest` +
      words.place(facts) +
      ` src.addr=${addressText(exchange.source)}` +
      word('src.identity', facts.identity) +
      words.method(facts.method) +
      words.host(facts.host) +
      word('http.path', facts.path) +
      ` http.version=HTTP/${exchange.request.version}` +
      (status === 0 ? '' : ` http.status=${status}`) +
      (facts.grpcStatus === undefined ? '' : ` grpc.status=${facts.grpcStatus}`) +
      word('trace.id', facts.traceId) +
      word('span.id', facts.spanId) +
      word('jwt.sub', facts.subject) +
      ` protocol=${protocolOf(facts)}` +
      recordText(facts, writeWord) +
      (facts.retries === 0 ? '' : ` retry.attempt=${facts.retries}`) +
      quoted('error', facts.error) +
      (facts.reason === 'Upstream' ? '' : word('reason', facts.reason)) +
      ` duration=${Math.trunc(facts.durationMs)}ms\n`
    )
  },
  shaped(time, exchange, facts, changes) {
    return `${time}\tinfo\trequest${shapedText(exchange, facts, changes)}\n`
  },
  badHead(time, source, error, protocol) {
    return (
      `${time}\tinfo\trequest src.addr=${addressText(source)} http.status=${error.row.status}` +
      ` protocol=${protocol} error=${quote(error.message)} reason=${error.row.reason}` +
      ' duration=0ms\n'
    )
  },
}

export const member = (name: string, value: string | undefined): string =>
  value === undefined || value === '' ? '' : `,"${name}":${quote(value)}`

const jsonFormat: LineFormat = {
  request(time, exchange, facts) {
    const status = statusOf(exchange, facts)
    return (
      `{"level":"info","time":"${time}","scope":"request"` +
      member('gateway', facts.gateway) +
      member('listener', facts.listener) +
      member('route_rule', facts.rule) +
      member('route', facts.route) +
      member('endpoint', facts.endpoint) +
      `,"src.addr":"${addressText(exchange.source)}"` +
      member('src.identity', facts.identity) +
      member('http.method', facts.method) +
      member('http.host', facts.host) +
      member('http.path', facts.path) +
      `,"http.version":"HTTP/${exchange.request.version}"` +
      (status === 0 ? '' : `,"http.status":${status}`) +
      (facts.grpcStatus === undefined ? '' : `,"grpc.status":${facts.grpcStatus}`) +
      member('trace.id', facts.traceId) +
      member('span.id', facts.spanId) +
      member('jwt.sub', facts.subject) +
      `,"protocol":"${protocolOf(facts)}"` +
      recordText(facts, writeMember) +
      (facts.retries === 0 ? '' : `,"retry.attempt":${facts.retries}`) +
      member('error', facts.error) +
      (facts.reason === 'Upstream' ? '' : member('reason', facts.reason)) +
      `,"duration":"${Math.trunc(facts.durationMs)}ms"}\n`
    )
  },
  shaped(time, exchange, facts, changes) {
    const fields = shapedJson(exchange, facts, changes)
    return `{"level":"info","time":"${time}","scope":"request"${fields}}\n`
  },
  badHead(time, source, error, protocol) {
    return (
      `{"level":"info","time":"${time}","scope":"request","src.addr":"${addressText(source)}"` +
      `,"http.status":${error.row.status},"protocol":"${protocol}"` +
      `,"error":${quote(error.message)},"reason":"${error.row.reason}"` +
      ',"duration":"0ms"}\n'
    )
  },
}

export const lineFormats: Readonly<Record<AccessLogFormat, LineFormat>> = {
  text: textFormat,
  json: jsonFormat,
}

/** The line of an exchange as its policy wants it; undefined where that wants none. */
export function requestLine(
  format: LineFormat,
  clock: { at(monotonicMs: number): string },
  exchange: ServerExchange,
  facts: RequestFacts,
): string | undefined {
  const { accessLog } = facts
  if (accessLog === undefined) return format.request(clock.at(exchange.endedAt), exchange, facts)
  if (!accessLog.accepts(exchange)) return undefined
  return accessLog.changes === undefined
    ? format.request(clock.at(exchange.endedAt), exchange, facts)
    : format.shaped(clock.at(exchange.endedAt), exchange, facts, accessLog.changes)
}
