/** Sends a request of a page to a listener of the gateway in the same process. */
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as sendHttps } from 'node:https'
import { request as sendHttp } from '../../../../ground/base/node-http.ts'
import {
  choice,
  type Infer,
  map,
  optional,
  port,
  problemOf,
  record,
  text,
} from '../../../../ground/base/shape.ts'
import { QueryError } from './source.ts'

const shape = record({
  scheme: choice('http', 'https'),
  port,
  method: choice('GET', 'POST', 'DELETE'),
  path: text,
  headers: map(text),
  body: optional(text),
})
type PageRequest = Infer<typeof shape>

interface Listeners {
  /** Where listeners are bound; all addresses if omitted. */
  readonly bindAddress: string | undefined
  /** The ports of the listeners, which are the only ones that a page may name. */
  readonly ports: readonly number[]
}

/** A part of a response, as a line of JSON. */
type AnswerPart =
  | { readonly status: number; readonly headers: readonly string[] }
  | { readonly data: string }
  | { readonly isComplete: true; readonly durationMs: number }
  | { readonly problem: string }

/** Milliseconds without a byte after which a response is given up. */
const silentMs = 300_000
const wildcards = ['', '0.0.0.0', '::']

/** Yields the head, pieces of the body in base64, and the end. @throws QueryError */
export async function* sendRequest(
  described: Readonly<Record<string, unknown>>,
  { bindAddress = '', ports }: Listeners,
  signal: AbortSignal,
): AsyncGenerator<AnswerPart> {
  const fault = problemOf(shape, described)
  if (fault !== undefined) throw new QueryError(fault)
  const asked = described as PageRequest
  if (!ports.includes(asked.port)) {
    throw new QueryError(`port: expected that of a listener of this gateway: ${ports.join(', ')}`)
  }
  const begunMs = performance.now()
  const host = wildcards.includes(bindAddress) ? '127.0.0.1' : bindAddress
  const request = open(asked, host, signal)
  try {
    const response = await responseOf(request, asked.body)
    yield { status: response.statusCode ?? 0, headers: response.rawHeaders }
    for await (const piece of response as AsyncIterable<Buffer>) {
      yield { data: piece.toString('base64') }
    }
    yield { isComplete: true, durationMs: Math.round(performance.now() - begunMs) }
  } catch (error) {
    yield { problem: (error as Error).message }
  } finally {
    request.destroy()
  }
}

/** @throws QueryError if a header or the path has characters that HTTP does not allow */
function open(asked: PageRequest, host: string, signal: AbortSignal): ClientRequest {
  const { scheme, port: at, method, path, headers } = asked
  const options = { host, port: at, method, path, headers, signal, agent: false, timeout: silentMs }
  try {
    // The certificate of a listener is for its clients, not for the loopback address.
    const sent =
      scheme === 'http'
        ? sendHttp(options)
        : sendHttps({ ...options, ...serverNameOf(headers), rejectUnauthorized: false })
    sent.on('timeout', () => sent.destroy(new Error(`no byte in ${silentMs / 1_000} seconds`)))
    return sent
  } catch (error) {
    throw new QueryError((error as Error).message)
  }
}

/** The name in `host`, unless it is an address. */
function serverNameOf({ host = '' }: PageRequest['headers']): { readonly servername?: string } {
  const name = host.replace(/:\d+$/, '')
  return /[a-z]/i.test(name) && !name.includes(':') ? { servername: name } : {}
}

async function responseOf(request: ClientRequest, body?: string): Promise<IncomingMessage> {
  const answered = once(request, 'response')
  request.end(body)
  const [response] = await answered
  return response as IncomingMessage
}
