/** Serves a POST: a message of a client, or a batch. */
import { GatewayError } from '../../../errors/index.ts'
import type { HeaderFields, RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, errorCodeOf, errorText } from '../answers.ts'
import { assumedVersion, hasBatches, latestVersion } from '../initialize.ts'
import { member, textOf } from '../json/scan.ts'
import { type McpMessage, type McpRequest, MessageRefusal, readClientMessages } from '../message.ts'
import { methodOf } from '../methods.ts'
import { newSessionId, type SessionState } from '../session-state.ts'
import { decode } from './answer-reader.ts'
import { serveInitialize } from './initialize.ts'
import { legacySession, serveLegacyMessage } from './legacy-client.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { MessageHandler } from './message-handler.ts'
import { ExchangeOutlet } from './outlet.ts'
import { jsonRefusal, lostSession, toFailure, verdictOf } from './refusals.ts'
import { ClientSession, endEverywhere, findSession, SessionEnded } from './target-session.ts'
import type { OnAbandon } from './transport.ts'

type Result = RespondVerdict | undefined

/** Maximum number of messages in one batch. */
const maxBatchSize = 100

export async function servePost(exchange: McpExchange): Promise<Result> {
  const read = await readBody(exchange)
  if ('kind' in read) return read
  const { messages, isBatch } = read
  const refused = checkMessages(exchange, messages, isBatch)
  if (refused !== undefined) return logRefused(exchange, messages, refused)
  const [first] = messages
  const legacy = legacySession(exchange)
  if (legacy !== undefined) return serveLegacyMessage(exchange, legacy, messages)
  if (first?.kind === 'request' && first.method === 'initialize') {
    return serveInitialize(exchange, first)
  }
  const session = exchange.backend.isStateless ? requestSession(exchange) : findSession(exchange)
  if ('kind' in session) return logRefused(exchange, messages, session)
  if (isBatch && !hasBatches(session.state.version)) {
    return logRefused(exchange, messages, noBatches())
  }
  return serveMessages(session, messages)
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

async function readBody(exchange: McpExchange): Promise<ReadBody | RespondVerdict> {
  const { requestBody, bufferLimit, request } = exchange.context.exchange
  if ((request.headers.get('content-encoding') ?? 'identity').toLowerCase() !== 'identity') {
    const message = 'Unsupported Media Type: the body must not be compressed'
    return jsonRefusal(415, undefined, codes.invalidRequest, message)
  }
  const body = await requestBody.buffer(bufferLimit)
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

const noBatches = () =>
  jsonRefusal(400, undefined, codes.invalidRequest, 'this version of MCP has no batches')

/** Checks the messages and the headers that repeat parts of a message for intermediaries. Both must agree. */
function checkMessages(
  { context }: McpExchange,
  messages: readonly McpMessage[],
  isBatch: boolean,
): RespondVerdict | undefined {
  const { headers } = context.exchange.request
  const stated = headers.get('mcp-protocol-version') ?? assumedVersion
  if (isBatch && !hasBatches(stated)) return noBatches()
  if (messages.length > maxBatchSize) {
    return jsonRefusal(400, undefined, codes.invalidRequest, 'the batch is too long')
  }
  if (isBatch && messages.some((one) => 'method' in one && one.method === 'initialize')) {
    return jsonRefusal(400, undefined, codes.invalidRequest, 'initialize comes alone')
  }
  const other = messages.find((message) => !agrees(message, headers))
  if (other === undefined) return undefined
  const id = other.kind === 'request' ? other.id : undefined
  return jsonRefusal(400, id, codes.invalidRequest, 'Mcp-Method or Mcp-Name differ from the body')
}

function agrees(message: McpMessage, headers: HeaderFields): boolean {
  // A response must not have these headers, because intermediaries would take it for a request.
  if (message.kind === 'response') return !headers.has('mcp-method') && !headers.has('mcp-name')
  const { text, params } = message
  const known = methodOf(message.method)
  const named =
    known.kind === 'item'
      ? member(params, known.key)
      : (member(params, 'name') ?? member(params, 'uri'))
  const method = headers.get('mcp-method') ?? message.method
  const name = headers.get('mcp-name')
  return method === message.method && (name === undefined || name === textOf(text, named))
}

/** Makes the session of one request to a stateless backend. Its id is never sent to the client. */
function requestSession(exchange: McpExchange): ClientSession {
  const stated = exchange.context.exchange.request.headers.get('mcp-protocol-version')
  const version = stated ?? latestVersion
  const hello = JSON.stringify({
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 'sluice', version: '1' },
  })
  const state: SessionState = {
    id: newSessionId(),
    backend: exchange.name,
    version,
    hello,
    targets: {},
  }
  return new ClientSession(exchange, state)
}

function serveMessages(session: ClientSession, messages: readonly McpMessage[]): Promise<Result> {
  const { context, backend, hub, notes } = session.exchange
  const isAdmitted = hub.admit(session.state)
  if (!isAdmitted) {
    const message = 'too many requests of the session are under way'
    return Promise.resolve(jsonRefusal(429, undefined, codes.internal, message))
  }
  const outlet = new ExchangeOutlet(context)
  const closes = new Set<() => void>()
  notes.onClose(() => {
    for (const close of closes) close()
    outlet.end()
  })
  const all = handlersOf(session, messages, outlet, (close) => closes.add(close))
  void serveAll(all, outlet)
    .catch((thrown) => refuseAll(all, thrown, outlet))
    .catch((thrown) => outlet.fail(thrown))
    .finally(() => hub.leave(session.state))
    .finally(() => (backend.isStateless ? endEverywhere(session) : undefined))
  return outlet.result
}

/** A message and its handler; each message of a batch is authorized and logged separately. */
interface ServedMessage<Message extends McpMessage = McpMessage> {
  readonly handler: MessageHandler
  readonly message: Message
}

function handlersOf(
  session: ClientSession,
  messages: readonly McpMessage[],
  outlet: ExchangeOutlet,
  onAbandon: OnAbandon,
): readonly ServedMessage[] {
  const { exchange, state } = session
  return messages.map((message, at) => {
    const own = at === 0 ? session : new ClientSession(exchange.forMessage(), state)
    return { handler: new MessageHandler(own, outlet, onAbandon), message }
  })
}

const isRequest = (one: ServedMessage): one is ServedMessage<McpRequest> =>
  one.message.kind === 'request'

async function serveAll(all: readonly ServedMessage[], outlet: ExchangeOutlet): Promise<void> {
  for (const { handler, message } of all) {
    if (message.kind !== 'request') await handler.notify(message)
  }
  const requests = all.filter(isRequest)
  const [only, ...more] = requests
  if (only === undefined) outlet.answer({ kind: 'respond', status: 202, reason: 'Upstream' })
  else if (more.length === 0) {
    const { text, eventFields } = await only.handler.answer(only.message)
    outlet.finish(text, eventFields)
  } else {
    await Promise.all(requests.map((one) => answerOne(one, outlet)))
    outlet.end()
  }
}

/** Answers one request of a batch; its failure does not affect the others. */
async function answerOne(
  { handler, message }: ServedMessage<McpRequest>,
  outlet: ExchangeOutlet,
): Promise<void> {
  const { text, eventFields } = await handler.answer(message).catch((thrown: unknown) => {
    const { message: why } = toFailure(thrown)
    handler.exchange.noteError(codes.internal)
    return { text: errorText(message.id, codes.internal, why), eventFields: undefined }
  })
  outlet.send(text, eventFields)
}

/** Reports to the client why there is no response, if that is still possible. */
function refuseAll(all: readonly ServedMessage[], thrown: unknown, outlet: ExchangeOutlet): void {
  const found = all.find(isRequest) ?? all[0]
  if (found === undefined || found.handler.exchange.context.over) return
  const { handler, message } = found
  const request = message.kind === 'request' ? message : undefined
  handler.exchange.noteError(codes.internal)
  if (thrown instanceof SessionEnded) {
    handler.exchange.hub.end(handler.session.state)
    refuse(outlet, request, lostSession())
    return
  }
  const failure = toFailure(thrown)
  // The client can resume the stream, so it gets no error.
  if (failure.isResumable) outlet.end()
  else refuse(outlet, request, verdictOf(failure, request?.id))
}

function refuse(
  outlet: ExchangeOutlet,
  request: McpRequest | undefined,
  verdict: RespondVerdict,
): void {
  if (outlet.isStream) {
    outlet.finish(errorText(request?.id, codes.internal, 'the server has gone'))
  } else outlet.answer(verdict)
}
