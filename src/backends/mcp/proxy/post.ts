/** POST: a message of a client, or a batch of them. */

import { GatewayError } from '../../../errors/index.ts'
import type { HeaderFields, RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, errorCodeOf, errorText } from '../answers.ts'
import { member, textOf } from '../json/scan.ts'
import { type McpMessage, type McpRequest, MessageRefusal, readClientMessages } from '../message.ts'
import { methodOf } from '../methods.ts'
import { newSessionId, type SessionState } from '../session-state.ts'
import { assumedVersion, hasBatches, latestVersion } from '../versions.ts'
import { decode } from './answer-reader.ts'
import { toFailure } from './failure.ts'
import { serveInitialize } from './initialize.ts'
import { legacySession } from './legacy.ts'
import { serveLegacyMessage } from './legacy-client.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { ExchangeOutlet } from './outlet.ts'
import { jsonRefusal, lostSession, verdictOf } from './refusals.ts'
import { findSession } from './session-requests.ts'
import { ClientSession, endEverywhere, SessionEnded } from './target-session.ts'
import type { Abandon } from './transport.ts'
import { Turn } from './turn.ts'

type Result = RespondVerdict | undefined

/** Messages of one batch. */
const longestBatch = 100

export async function servePost(exchange: McpExchange): Promise<Result> {
  const read = await readBody(exchange)
  if ('kind' in read) return read
  const { messages, isBatch } = read
  const refused = checkMessages(exchange, messages, isBatch)
  if (refused !== undefined) return noted(exchange, messages, refused)
  const [first] = messages
  const legacy = legacySession(exchange)
  if (legacy !== undefined) return serveLegacyMessage(exchange, legacy, messages)
  if (first?.kind === 'request' && first.method === 'initialize') {
    return serveInitialize(exchange, first)
  }
  const session = exchange.backend.isStateless ? passingSession(exchange) : findSession(exchange)
  if ('kind' in session) return noted(exchange, messages, session)
  if (isBatch && !hasBatches(session.state.version)) {
    return noted(exchange, messages, noBatches())
  }
  return serveMessages(session, messages)
}

/** The log names messages that were refused before anybody served them, too. */
function noted(
  exchange: McpExchange,
  messages: readonly McpMessage[],
  refusal: RespondVerdict,
): RespondVerdict {
  const code = typeof refusal.body === 'string' ? errorCodeOf(refusal.body) : undefined
  for (const message of messages.slice(0, longestBatch)) {
    if (message.kind === 'response') continue
    const own = exchange.forMessage()
    own.tell(message.method)
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
    if (error.method !== undefined) exchange.tell(error.method)
    exchange.noteError(error.code)
    return jsonRefusal(400, undefined, error.code, error.message)
  }
}

const noBatches = () =>
  jsonRefusal(400, undefined, codes.invalidRequest, 'this version of MCP has no batches')

/** Headers repeat what the message says for whoever reads no bodies; both must say the same. */
function checkMessages(
  { context }: McpExchange,
  messages: readonly McpMessage[],
  isBatch: boolean,
): RespondVerdict | undefined {
  const { headers } = context.exchange.request
  const stated = headers.get('mcp-protocol-version') ?? assumedVersion
  if (isBatch && !hasBatches(stated)) return noBatches()
  if (messages.length > longestBatch) {
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
  // An answer has neither, so whoever believes the headers would take it for something else.
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

/** Of a backend without sessions: one for each request, which nobody hears of. */
function passingSession(exchange: McpExchange): ClientSession {
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
  const abandon: Abandon = { onAbandon: (close) => closes.add(close) }
  notes.onClose(() => {
    for (const close of closes) close()
    outlet.end()
  })
  const turns = turnsOf(session, messages, outlet, abandon)
  void serveTurns(turns, outlet)
    .catch((thrown) => refuseAll(turns, thrown, outlet))
    .catch((thrown) => outlet.fail(thrown))
    .finally(() => hub.leave(session.state))
    .finally(() => (backend.isStateless ? endEverywhere(session) : undefined))
  return outlet.result
}

/** A message with the turn that serves it; each message of a batch is judged and logged by itself. */
interface MessageTurn<Message extends McpMessage = McpMessage> {
  readonly turn: Turn
  readonly message: Message
}

function turnsOf(
  session: ClientSession,
  messages: readonly McpMessage[],
  outlet: ExchangeOutlet,
  abandon: Abandon,
): readonly MessageTurn[] {
  const { exchange, state } = session
  return messages.map((message, at) => {
    const own = at === 0 ? session : new ClientSession(exchange.forMessage(), state)
    return { turn: new Turn(own, outlet, abandon), message }
  })
}

const isRequest = (one: MessageTurn): one is MessageTurn<McpRequest> =>
  one.message.kind === 'request'

async function serveTurns(turns: readonly MessageTurn[], outlet: ExchangeOutlet): Promise<void> {
  for (const { turn, message } of turns) {
    if (message.kind !== 'request') await turn.notify(message)
  }
  const requests = turns.filter(isRequest)
  const [only, ...more] = requests
  if (only === undefined) outlet.answer(202, [], undefined, 'Upstream')
  else if (more.length === 0) {
    const { text, mark } = await only.turn.answer(only.message)
    outlet.finish(text, mark)
  } else {
    await Promise.all(requests.map((one) => answerOne(one, outlet)))
    outlet.end()
  }
}

/** One answer of several: an error of one request is none of the others. */
async function answerOne(
  { turn, message }: MessageTurn<McpRequest>,
  outlet: ExchangeOutlet,
): Promise<void> {
  const { text, mark } = await turn.answer(message).catch((thrown: unknown) => {
    const { message: why } = toFailure(thrown)
    turn.exchange.noteError(codes.internal)
    return { text: errorText(message.id, codes.internal, why), mark: undefined }
  })
  outlet.send(text, mark)
}

/** There is no answer: the client is told why, as far as it can still be. */
function refuseAll(turns: readonly MessageTurn[], thrown: unknown, outlet: ExchangeOutlet): void {
  const found = turns.find(isRequest) ?? turns[0]
  if (found === undefined || found.turn.exchange.context.over) return
  const { turn, message } = found
  const request = message.kind === 'request' ? message : undefined
  turn.exchange.noteError(codes.internal)
  if (thrown instanceof SessionEnded) {
    turn.exchange.hub.end(turn.session.state)
    refuse(outlet, request, lostSession())
    return
  }
  const failure = toFailure(thrown)
  // The client takes the stream up again where it was.
  if (failure.isResumable) outlet.end()
  else refuse(outlet, request, verdictOf(failure, request?.id))
}

function refuse(
  outlet: ExchangeOutlet,
  request: McpRequest | undefined,
  { status, headers = [], body, reason }: RespondVerdict,
): void {
  if (!outlet.isStream) {
    outlet.answer(status, headers, body, reason)
    return
  }
  const text = errorText(request?.id, codes.internal, 'the server has gone')
  outlet.finish(text)
}
