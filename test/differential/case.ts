/** One row of recorded traffic: what a client sends, and what the server behind the proxy answers. */
import type { Field } from '../proxy/frame-client.ts'

/** What the server does once it has the head of a request, or the whole request. */
export interface Step {
  readonly on: 'head' | 'request'
  readonly write: string
  /** How the server ends the connection afterwards. */
  readonly ending?: 'end' | 'reset'
}

interface Common {
  /** `subject/what`, by which explanations name it. */
  readonly name: string
  /** The public report that the input comes from, such as `envoyproxy/envoy#15049`. */
  readonly report?: string
  /** A text answers whole requests. If omitted, the server sends `hello`. */
  readonly answer?: string | readonly Step[]
  /** How long the client waits for what comes next. */
  readonly patienceMs?: number
}

/** A request of HTTP/1.x as bytes. */
export interface Http1Case extends Common {
  readonly send: string
  /** Sent once an interim response has arrived. */
  readonly thenSend?: string
  /** How many responses the client waits for. Default: 1. */
  readonly responses?: number
}

/** A request of HTTP/2 as fields. */
export interface Http2Case extends Common {
  readonly fields: readonly Field[]
  readonly body?: string
  readonly trailers?: readonly Field[]
}

export type Case = Http1Case | Http2Case

export const site = 'site.example.com'

export interface RequestParts {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly version?: string
  readonly fields?: readonly string[]
  readonly body?: string
}

/** Bytes of a request; `fields` are whole lines. */
export function requestText({
  method = 'GET',
  path = '/page',
  host = site,
  version = 'HTTP/1.1',
  fields = [],
  body = '',
}: RequestParts = {}): string {
  const lines = [`${method} ${path} ${version}`, `Host: ${host}`, ...fields]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** A request with a body and its length. */
export const withLength = (body: string, parts: RequestParts = {}): string =>
  requestText({
    method: 'POST',
    ...parts,
    fields: [`Content-Length: ${body.length}`, ...(parts.fields ?? [])],
    body,
  })

/** A request with a body in chunks, and lines of a trailer section. */
export const withChunks = (
  chunks: readonly string[],
  trailers: readonly string[] = [],
  parts: RequestParts = {},
): string =>
  requestText({
    method: 'POST',
    ...parts,
    fields: ['Transfer-Encoding: chunked', ...(parts.fields ?? [])],
    body: chunked(chunks, trailers),
  })

export function chunked(chunks: readonly string[], trailers: readonly string[] = []): string {
  const sizes = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  const lines = trailers.map((line) => `${line}\r\n`)
  return `${sizes.join('')}0\r\n${lines.join('')}\r\n`
}

/** Bytes of a response whose head marks it as the server's own. */
export function responseText(
  status: string,
  fields: readonly string[],
  body = '',
  version = 'HTTP/1.1',
): string {
  return `${[`${version} ${status}`, 'X-From: server', ...fields].join('\r\n')}\r\n\r\n${body}`
}

export const ok = (fields: readonly string[] = [], body = 'hello'): string =>
  responseText('200 OK', [`Content-Length: ${body.length}`, ...fields], body)

/** The fields of a request of HTTP/2. */
export const fieldsOf = (
  method = 'GET',
  path = '/page',
  more: readonly Field[] = [],
  authority = site,
): readonly Field[] => [
  [':method', method],
  [':scheme', 'http'],
  [':authority', authority],
  [':path', path],
  ...more,
]
