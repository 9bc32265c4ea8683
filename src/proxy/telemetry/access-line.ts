/**
 * One line of the access log, as text or as JSON. The fields and their order are fixed; absent
 * values are left out. Lines are put together by hand: no object and no generic serialiser on the
 * path of every request.
 */
import type { GatewayError } from '../../errors.ts'
import type { ServerExchange } from '../engine/types.ts'
import type { RequestFacts } from './types.ts'

export type AccessLogFormat = 'text' | 'json'

/** Makes one line, with its line feed. */
export interface LineFormat {
  request(time: string, exchange: ServerExchange, facts: RequestFacts): string
  /** A connection whose request head could not be read. */
  badHead(time: string, source: Address, error: GatewayError, protocol: 'http' | 'https'): string
}

export interface Address {
  readonly address: string
  readonly port: number
}

/** `address:port`, with brackets around IPv6. */
export function addressText({ address, port }: Address): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}

/** What the log and the metrics call the status: as sent, else what the error would have sent. */
export function statusOf(exchange: ServerExchange, facts: RequestFacts): number {
  return facts.status || exchange.error?.row.status || 0
}

// Anything that could be read as the end of a value or of a line.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get through
const unsafe = /[\u0000-\u0020\u007f-\u00a0\u2028\u2029]/

/** What JSON leaves as it is and a terminal or a line reader would obey. */
const unsafeInJson = /[\u007f-\u009f\u2028\u2029]/g

const quote = (value: string): string =>
  JSON.stringify(value).replace(
    unsafeInJson,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

export const word = (name: string, value: string | undefined): string => {
  if (value === undefined || value === '') return ''
  return unsafe.test(value) ? ` ${name}=${quote(value)}` : ` ${name}=${value}`
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

const words = {
  gateway: repeatedWord('gateway'),
  listener: repeatedWord('listener'),
  rule: repeatedWord('route_rule'),
  route: repeatedWord('route'),
  endpoint: repeatedWord('endpoint'),
  method: repeatedWord('http.method'),
  host: repeatedWord('http.host'),
}

export const quoted = (name: string, value: string | undefined): string =>
  value === undefined ? '' : ` ${name}=${quote(value)}`

const textFormat: LineFormat = {
  request(time, exchange, facts) {
    const status = statusOf(exchange, facts)
    return (
      `${time}\tinfo\trequest` +
      words.gateway(facts.gateway) +
      words.listener(facts.listener) +
      words.rule(facts.rule) +
      words.route(facts.route) +
      words.endpoint(facts.endpoint) +
      ` src.addr=${addressText(exchange.source)}` +
      words.method(facts.method) +
      words.host(facts.host) +
      word('http.path', facts.path) +
      ` http.version=HTTP/${exchange.request.version}` +
      (status === 0 ? '' : ` http.status=${status}`) +
      ` protocol=${facts.protocol}` +
      (facts.retries === 0 ? '' : ` retry.attempt=${facts.retries}`) +
      quoted('error', facts.error) +
      (facts.reason === 'Upstream' ? '' : word('reason', facts.reason)) +
      ` duration=${Math.trunc(facts.durationMs)}ms\n`
    )
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
      member('http.method', facts.method) +
      member('http.host', facts.host) +
      member('http.path', facts.path) +
      `,"http.version":"HTTP/${exchange.request.version}"` +
      (status === 0 ? '' : `,"http.status":${status}`) +
      `,"protocol":"${facts.protocol}"` +
      (facts.retries === 0 ? '' : `,"retry.attempt":${facts.retries}`) +
      member('error', facts.error) +
      (facts.reason === 'Upstream' ? '' : member('reason', facts.reason)) +
      `,"duration":"${Math.trunc(facts.durationMs)}ms"}\n`
    )
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
