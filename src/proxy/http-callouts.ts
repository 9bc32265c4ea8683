/** HTTP calls of policies to backends, with the endpoints and policies that those have. */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from 'node:https'
import { GatewayError } from '../errors.ts'
import type { HttpCallout, HttpCalloutAnswer } from '../exchange/exchange.ts'
import { resolveCallout } from './callout-destination.ts'
import type { UpstreamAddress } from './engine/types.ts'
import type { PhaseContext } from './phases.ts'
import { tlsOptions } from './telemetry/otlp/senders.ts'
import type { Destination } from './upstream/destination.ts'

/** Endpoints whose connections are kept open; the one that was added first goes first. */
const maxAgents = 64
const agentOptions = { keepAlive: true, maxSockets: 256, maxFreeSockets: 32 }

export class HttpCallouts {
  readonly #context: PhaseContext
  readonly #agents = new Map<string, HttpAgent>()

  constructor(context: PhaseContext) {
    this.#context = context
  }

  /** Rejects with `callout_failed`, or with what keeps the backend from being reached. */
  async call(call: HttpCallout): Promise<HttpCalloutAnswer> {
    const destination = await resolveCallout(this.#context, call.target)
    const { address, settings } = destination
    const options: RequestOptions = {
      host: address.host,
      port: address.port,
      method: call.method,
      path: call.path,
      headers: fieldsOf(call, destination),
      agent: this.#agentOf(address),
      signal: AbortSignal.timeout(settings.requestTimeoutMs ?? call.timeoutMs),
    }
    try {
      return await send(options, call, true)
    } catch (error) {
      throw new GatewayError('callout_failed', error instanceof Error ? error.message : undefined)
    }
  }

  #agentOf({ pool, tls }: UpstreamAddress): HttpAgent {
    const known = this.#agents.get(pool)
    if (known !== undefined) return known
    const [oldest] = this.#agents.keys()
    // Calls under way finish: what is dropped closes its connections as they come back unused.
    if (this.#agents.size >= maxAgents && oldest !== undefined) this.#agents.delete(oldest)
    const made =
      tls === undefined
        ? new HttpAgent(agentOptions)
        : new HttpsAgent({ ...agentOptions, ...tlsOptions(tls), ALPNProtocols: ['http/1.1'] })
    this.#agents.set(pool, made)
    return made
  }
}

/** Several values of one name become a list. */
function fieldsOf({ headers, body }: HttpCallout, { authority }: Destination) {
  const fields: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    const before = fields[key]
    fields[key] =
      before === undefined
        ? value
        : key === 'cookie'
          ? `${before}; ${value}`
          : [before, value].flat()
  }
  fields.host ??= authority
  if (body !== undefined) fields['content-length'] = `${body.length}`
  return fields
}

/** A kept connection may have been closed by the server just now: then it is tried once more. */
async function send(
  options: RequestOptions,
  call: HttpCallout,
  mayRepeat: boolean,
): Promise<HttpCalloutAnswer> {
  const isSecure = options.agent instanceof HttpsAgent
  const request = isSecure ? httpsRequest(options) : httpRequest(options)
  let response: IncomingMessage
  try {
    response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve)
      request.on('error', reject)
      request.once('upgrade', (_response, socket) => {
        socket.destroy()
        reject(new Error('the server switched protocols'))
      })
      request.end(call.body)
    })
  } catch (error) {
    const isStale = request.reusedSocket && (error as { code?: string }).code === 'ECONNRESET'
    if (isStale && mayRepeat) return send(options, call, false)
    throw error
  }
  const body = await readBody(response, call.maxResponseBytes)
  const { statusCode: status = 0, rawHeaders } = response
  const headers: [string, string][] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    headers.push([rawHeaders[at] ?? '', rawHeaders[at + 1] ?? ''])
  }
  return { status, headers, body }
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response) {
    length += (chunk as Buffer).length
    // Leaving the loop closes the connection.
    if (length > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
