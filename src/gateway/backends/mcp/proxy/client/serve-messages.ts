/** Serves the messages of one POST with their handlers, and sends their responses. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { codes, errorText } from '../../json-rpc.ts'
import type { McpMessage, McpRequest } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { MessageStream } from '../exchange/message-stream.ts'
import { lostSession, verdictOf } from '../exchange/refusals.ts'
import { MessageHandler } from '../relay/message-handler.ts'
import { toFailure } from '../target/target-failure.ts'
import type { OnAbandon } from '../target/transport.ts'
import { SessionEnded } from '../upstream/client-session.ts'
import type { Upstreams } from '../upstream/upstreams.ts'

/** A message, and how it reaches the targets. */
export interface ClientMessage {
  readonly upstreams: Upstreams
  readonly message: McpMessage
}

/** Functions that are called when the client has gone or the response is complete. */
export function abandonOf({ notes }: McpExchange): OnAbandon {
  return (close) => notes.onClose(close)
}

/** Serves messages of one client. `onEnd` is called when all have been served. */
export function serveMessages(
  exchange: McpExchange,
  messages: readonly ClientMessage[],
  onAbandon: OnAbandon,
  onEnd: () => unknown,
): Promise<RespondVerdict | undefined> {
  const messageStream = new MessageStream(exchange)
  onAbandon(() => messageStream.end())
  const all = messages.map(({ upstreams, message }) => {
    return { handler: new MessageHandler(upstreams, messageStream, onAbandon), message }
  })
  serveOrRefuse(all, messageStream, onEnd)
  return messageStream.result
}

/** Never throws. */
function serveOrRefuse(
  all: readonly ServedMessage[],
  messageStream: MessageStream,
  onEnd: () => unknown,
): void {
  const ended = () => void onEnd()
  const failed = (thrown: unknown) => {
    try {
      refuseAll(all, thrown, messageStream)
    } catch (failure) {
      messageStream.fail(failure)
    } finally {
      ended()
    }
  }
  try {
    const [first] = all
    const isAlone = all.length === 1 && first !== undefined && isRequest(first)
    const serving = isAlone ? first.handler.finish(first.message) : serveAll(all, messageStream)
    if (serving instanceof Promise) serving.then(ended, failed)
    else ended()
  } catch (thrown) {
    failed(thrown)
  }
}

/** A message and its handler. */
interface ServedMessage<Message extends McpMessage = McpMessage> {
  readonly handler: MessageHandler
  readonly message: Message
}

const isRequest = (one: ServedMessage): one is ServedMessage<McpRequest> =>
  one.message.kind === 'request'

async function serveAll(
  all: readonly ServedMessage[],
  messageStream: MessageStream,
): Promise<void> {
  for (const { handler, message } of all) {
    if (message.kind !== 'request') await handler.notify(message)
  }
  const requests = all.filter(isRequest)
  const [only, ...more] = requests
  if (only === undefined)
    messageStream.respond({ kind: 'respond', status: 202, reason: 'Upstream' })
  else if (more.length === 0) await only.handler.finish(only.message)
  else {
    await Promise.all(requests.map((one) => serveOne(one, messageStream)))
    messageStream.end()
  }
}

/** Serves one request of a batch; its failure does not affect the others. */
async function serveOne(
  { handler, message }: ServedMessage<McpRequest>,
  messageStream: MessageStream,
): Promise<void> {
  const { text, eventFields } = await handler.respond(message).catch((thrown: unknown) => {
    const { message: why } = toFailure(thrown)
    handler.exchange.noteError(codes.internal)
    return { text: errorText(message.id, codes.internal, why), eventFields: undefined }
  })
  messageStream.send(text, eventFields)
}

/** Reports to the client why there is no response, if that is still possible. */
function refuseAll(
  all: readonly ServedMessage[],
  thrown: unknown,
  messageStream: MessageStream,
): void {
  const found = all.find(isRequest) ?? all[0]
  if (found === undefined || found.handler.exchange.context.over) return
  const { handler, message } = found
  const request = message.kind === 'request' ? message : undefined
  handler.exchange.noteError(codes.internal)
  if (thrown instanceof SessionEnded) {
    handler.exchange.shared.end(thrown.state)
    refuse(messageStream, request, lostSession())
    return
  }
  const failure = toFailure(thrown)
  // The client can resume the stream, so it gets no error.
  if (failure.isResumable) messageStream.end()
  else refuse(messageStream, request, verdictOf(failure, request?.id), failure.message)
}

function refuse(
  messageStream: MessageStream,
  request: McpRequest | undefined,
  verdict: RespondVerdict,
  message = 'Session not found',
): void {
  if (messageStream.isStream) {
    messageStream.finish({ text: errorText(request?.id, codes.internal, message) })
  } else messageStream.respond(verdict)
}
