/** Serves a POST: a message of a client, or a batch. */
import { andThen } from '../../../../../ground/base/and-then.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type { BufferedBody, RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { detectEra } from '../../eras/detect-era.ts'
import { hasBatches, latestLegacyVersion } from '../../eras/versions.ts'
import { newId } from '../../ids.ts'
import { codes, errorCodeOf } from '../../json-rpc.ts'
import { type McpMessage, MessageRefusal, readClientMessages } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { jsonRefusal } from '../exchange/refusals.ts'
import type { SessionState } from '../session/session-state.ts'
import { decode } from '../target/response-reader.ts'
import { ClientSession, endEverywhere, findSession } from '../upstream/client-session.ts'
import { checkLegacyMessages, maxBatchSize, noBatches } from './checks.ts'
import { serveInitialize } from './initialize.ts'
import { withSentName } from './message-names.ts'
import { serveModern } from './modern-post.ts'
import { olderSessionId, serveOlderMessages } from './older-transport.ts'
import { abandonOf, type ClientMessage, serveMessages } from './serve-messages.ts'

type Result = RespondVerdict | undefined

export function servePost(exchange: McpExchange): Result | Promise<Result> {
  const { requestBody, bufferLimit } = exchange.context.exchange
  const { headers } = exchange.client.request
  if ((headers.get('content-encoding') ?? 'identity').toLowerCase() !== 'identity') {
    const message = 'Unsupported Media Type: the body must not be compressed'
    return jsonRefusal(415, undefined, codes.invalidRequest, message)
  }
  return andThen(requestBody.read(bufferLimit), serveBody, exchange)
}

function serveBody(body: BufferedBody, exchange: McpExchange): Result | Promise<Result> {
  const read = readBody(exchange, body)
  if ('kind' in read) return read
  const { messages, isBatch } = read
  const era = withSentName(exchange, detectEra, messages, isBatch)
  if (era !== undefined && 'code' in era) {
    const { id, code, message, data } = era
    // The message may contain a header or a key of the request.
    const detail = 'the envelope or the headers of the message are not valid'
    return logRefused(exchange, messages, jsonRefusal(400, id, code, message, { data, detail }))
  }
  if (era !== undefined) return serveModern(exchange, era)
  const refused = withSentName(exchange, checkLegacyMessages, messages, isBatch)
  if (refused !== undefined) return logRefused(exchange, messages, refused)
  const [first] = messages
  const legacy = olderSessionId(exchange)
  if (legacy !== undefined) return serveOlderMessages(exchange, legacy, messages)
  if (first?.kind === 'request' && first.method === 'initialize') {
    return serveInitialize(exchange, first)
  }
  const session = exchange.backend.isStateless ? requestSession(exchange) : findSession(exchange)
  if ('kind' in session) return logRefused(exchange, messages, session)
  if (isBatch && !hasBatches(session.state.version)) {
    return logRefused(exchange, messages, noBatches())
  }
  return serveSession(session, messages)
}

/** Adds refused messages to the log. */
function logRefused(
  exchange: McpExchange,
  messages: readonly McpMessage[],
  refusal: RespondVerdict,
): RespondVerdict {
  const code = typeof refusal.body === 'string' ? errorCodeOf(refusal.body) : undefined
  for (const message of messages.slice(0, maxBatchSize)) {
    if (message.kind === 'response') continue
    const own = exchange.forMessage()
    own.describe(message.method)
    if (code !== undefined) own.noteError(code)
  }
  return refusal
}

interface ReadBody {
  readonly messages: readonly McpMessage[]
  readonly isBatch: boolean
}

function readBody(exchange: McpExchange, body: BufferedBody): ReadBody | RespondVerdict {
  if (!body.complete) throw new GatewayError('body_too_large')
  try {
    const found = readClientMessages(decode(body.bytes))
    return 'kind' in found
      ? { messages: [found], isBatch: false }
      : { messages: found, isBatch: true }
  } catch (error) {
    if (!(error instanceof MessageRefusal)) throw error
    if (error.method !== undefined) exchange.describe(error.method)
    exchange.noteError(error.code)
    // The message may contain a key of the body.
    const detail = 'the body is not a valid message'
    return jsonRefusal(400, undefined, error.code, error.message, { detail })
  }
}

/** Makes the session of one request to a stateless backend. Its id is never sent to the client. */
function requestSession(exchange: McpExchange): ClientSession {
  const stated = exchange.context.exchange.request.headers.get('mcp-protocol-version')
  const version = stated ?? latestLegacyVersion
  const params = JSON.stringify({
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'sluice', version: '1' },
  })
  const state: SessionState = {
    id: newId(),
    backend: exchange.name,
    version,
    hello: params,
    targets: {},
  }
  return new ClientSession(exchange, state)
}

function serveSession(session: ClientSession, messages: readonly McpMessage[]): Promise<Result> {
  const { exchange, state } = session
  const { backend, shared } = exchange
  if (!shared.admit(state)) {
    const message = 'too many requests of the session are under way'
    return Promise.resolve(jsonRefusal(429, undefined, codes.internal, message))
  }
  // Each message of a batch is authorized and logged separately.
  const all = messages.map((message, at): ClientMessage => {
    const upstreams = at === 0 ? session : new ClientSession(exchange.forMessage(), state)
    return { upstreams, message }
  })
  return serveMessages(exchange, all, abandonOf(exchange), () => {
    shared.leave(state)
    return backend.isStateless ? endEverywhere(session) : undefined
  })
}
