/** Clients of the older transport (HTTP with SSE): POST messages, and one stream of responses. */
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { codes, errorText } from '../../json-rpc.ts'
import type { McpMessage, McpRequest } from '../../message.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import { MessageStream } from '../exchange/message-stream.ts'
import { jsonRefusal, lostSession, otherClient } from '../exchange/refusals.ts'
import { MessageHandler } from '../relay/message-handler.ts'
import { ServerStreams } from '../relay/server-streams.ts'
import { type ClientRecord, ClientView } from '../session/client-view.ts'
import type { SessionState } from '../session/session-state.ts'
import { toFailure } from '../target/target-failure.ts'
import { ClientSession, endEverywhere, SessionEnded } from '../upstream/client-session.ts'
import { beginSession } from './initialize.ts'

/** Whether the request opens a stream of the older transport. */
export function opensOlderStream({ client }: McpExchange): boolean {
  const { method, headers, path } = client.request
  return method === 'GET' && path.endsWith('/sse') && !headers.has('mcp-session-id')
}

/** Returns the session id of a POST of the older transport; undefined for other requests. */
export function olderSessionId({ client, backend }: McpExchange): string | undefined {
  const { query, headers, method } = client.request
  if (query === undefined || method !== 'POST' || headers.has('mcp-session-id')) return undefined
  if (backend.isStateless) return undefined
  return new URLSearchParams(query).get('sessionId') ?? undefined
}

/** Maximum number of concurrent messages of one client. */
const maxPending = 256

class OlderTransportClient {
  readonly #id: string
  readonly #exchange: McpExchange
  readonly #messageStream: MessageStream
  readonly principal: string | undefined
  readonly #closes = new Set<() => void>()
  #state: SessionState | undefined
  #streams: ServerStreams | undefined
  #pending = 0

  constructor(exchange: McpExchange, id: string) {
    this.#id = id
    this.#exchange = exchange
    this.#messageStream = new MessageStream(exchange)
    this.principal = exchange.principal
  }

  /** Begins the stream and names the path for messages in its first event. */
  begin(): Promise<RespondVerdict | undefined> {
    const { context, shared, notes } = this.#exchange
    const removeClient = shared.addStreamClient(this.#id, this)
    this.#messageStream.keepOpen(() => {
      if (this.#state !== undefined) shared.live(this.#state)
    })
    notes.onClose(() => {
      removeClient()
      this.#close()
    })
    const [path = '/', query] = (context.original?.path ?? context.exchange.request.path).split('?')
    const rest = query === undefined ? '' : `${query}&`
    this.#messageStream.sendEvent(`event: endpoint\ndata: ${path}?${rest}sessionId=${this.#id}\n\n`)
    return this.#messageStream.result
  }

  get backend(): string {
    return this.#exchange.name
  }

  #close(): void {
    this.#messageStream.end()
    this.#streams?.close()
    for (const close of this.#closes) close()
    if (this.#state === undefined) return
    void endEverywhere(new ClientSession(this.#exchange, this.#state))
  }

  receiveFrom(client: ClientRecord, messages: readonly McpMessage[]): boolean {
    return this.receive(messages, this.#exchange.passedOn(ClientView.from(client)))
  }

  /** Serves the messages of the request of `exchange`. Returns false if there are too many. */
  receive(messages: readonly McpMessage[], exchange: McpExchange): boolean {
    if (this.#pending + messages.length > maxPending) return false
    for (const message of messages) {
      this.#pending++
      void this.#serve(message, exchange.forMessage())
        .catch((thrown) => this.#refuse(message, thrown))
        .finally(() => {
          this.#pending--
        })
    }
    return true
  }

  async #serve(message: McpMessage, exchange: McpExchange): Promise<void> {
    if (message.kind === 'request' && message.method === 'initialize') {
      await this.#initialize(message, exchange)
      return
    }
    if (this.#state === undefined) {
      if (message.kind !== 'request') return
      this.#messageStream.send(
        errorText(message.id, codes.invalidRequest, 'initialize comes first'),
      )
      return
    }
    const session = new ClientSession(exchange, this.#state)
    const handler = new MessageHandler(session, this.#messageStream, this.#onAbandon)
    if (message.kind === 'request') this.#messageStream.send((await handler.respond(message)).text)
    else await handler.notify(message)
    if (message.kind === 'notification' && message.method === 'notifications/initialized') {
      this.#listen(this.#state)
    }
  }

  readonly #onAbandon = (close: () => void): void => {
    this.#closes.add(close)
  }

  #listen(state: SessionState): void {
    if (this.#streams !== undefined) return
    const session = new ClientSession(this.#exchange, state)
    this.#streams = new ServerStreams(session, this.#messageStream, undefined)
    this.#streams.open().catch(() => this.#messageStream.end())
  }

  async #initialize(request: McpRequest, exchange: McpExchange): Promise<void> {
    const begun = await beginSession(exchange, request, this.#onAbandon)
    if ('kind' in begun) {
      const text = typeof begun.body === 'string' ? begun.body : ''
      const isMessage = text.startsWith('{"jsonrpc"')
      this.#messageStream.send(
        isMessage ? text : errorText(request.id, codes.internal, 'no server responds'),
      )
      return
    }
    this.#state = begun.state
    this.#messageStream.send(begun.text)
  }

  #refuse(message: McpMessage, thrown: unknown): void {
    if (thrown instanceof SessionEnded) {
      this.#messageStream.end()
      return
    }
    if (message.kind !== 'request') return
    this.#messageStream.send(errorText(message.id, codes.internal, toFailure(thrown).message))
  }
}

/** Serves a GET of the older transport. */
export async function serveOlderStream(exchange: McpExchange): Promise<RespondVerdict | undefined> {
  const id = await exchange.shared.newStreamId(exchange.name)
  if (exchange.context.over) return undefined
  return new OlderTransportClient(exchange, id).begin()
}

/** Serves a POST of the older transport. */
export async function serveOlderMessages(
  exchange: McpExchange,
  id: string,
  messages: readonly McpMessage[],
): Promise<RespondVerdict> {
  const { principal, shared } = exchange
  const found = shared.streamClient(id)
  // If the client's stream is not in this thread, it may be in another one.
  if (!(found instanceof OlderTransportClient)) {
    const texts = messages.map(({ text }) => text)
    for (const message of messages) {
      if (message.kind !== 'response') exchange.forMessage().describe(message.method)
    }
    const client = exchange.client.record()
    const delivery = await shared.passOn({ id, backend: exchange.name, principal, texts, client })
    if (delivery === 'full') return tooManyMessages()
    return delivery === 'taken' ? accepted : lostSession()
  }
  if (found.backend !== exchange.name) return lostSession()
  if (found.principal !== principal) return lostSession(otherClient)
  if (found.receive(messages, exchange)) return accepted
  return tooManyMessages()
}

function tooManyMessages(): RespondVerdict {
  return jsonRefusal(429, undefined, codes.internal, 'too many requests are under way')
}

const accepted: RespondVerdict = {
  kind: 'respond',
  status: 202,
  headers: [['content-type', 'text/plain']],
  body: 'Accepted',
  reason: 'Upstream',
}
