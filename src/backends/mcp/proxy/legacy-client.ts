/** Clients of the older transport (HTTP with SSE): answers come on one stream, messages by POST. */
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { codes, errorText } from '../answers.ts'
import type { McpMessage, McpRequest } from '../message.ts'
import { newSessionId, type SessionState } from '../session-state.ts'
import { type ClientRecord, ClientView } from './client-view.ts'
import { toFailure } from './failure.ts'
import { ServerStreams } from './get.ts'
import { beginSession } from './initialize.ts'
import type { McpExchange } from './mcp-exchange.ts'
import { ExchangeOutlet } from './outlet.ts'
import { jsonRefusal, lostSession } from './refusals.ts'
import { ClientSession, endEverywhere, SessionEnded } from './target-session.ts'
import { Turn } from './turn.ts'

/** Messages that one client may have under way. */
const mostPending = 256

class LegacyClient {
  readonly id = newSessionId()
  readonly #exchange: McpExchange
  readonly #outlet: ExchangeOutlet
  readonly principal: string | undefined
  readonly #closes = new Set<() => void>()
  #state: SessionState | undefined
  #streams: ServerStreams | undefined
  #pending = 0

  constructor(exchange: McpExchange) {
    this.#exchange = exchange
    this.#outlet = new ExchangeOutlet(exchange.context)
    this.principal = exchange.principal
  }

  /** The stream; undefined settles it as soon as it has begun. */
  begin(): Promise<RespondVerdict | undefined> {
    const { context, hub, notes } = this.#exchange
    hub.legacyClients.set(this.id, this)
    const endLooking = hub.onSweep(() => {
      if (this.#state !== undefined) hub.live(this.#state)
      this.#outlet.keepAlive()
    })
    const stayOn = hub.onStop(() => this.#outlet.end())
    notes.onClose(() => {
      stayOn()
      endLooking()
      this.#close()
    })
    const [path = '/', query] = (context.original?.path ?? context.exchange.request.path).split('?')
    const rest = query === undefined ? '' : `${query}&`
    this.#outlet.sendEvent(`event: endpoint\ndata: ${path}?${rest}sessionId=${this.id}\n\n`)
    return this.#outlet.result
  }

  get backend(): string {
    return this.#exchange.name
  }

  #close(): void {
    this.#exchange.hub.legacyClients.delete(this.id)
    this.#outlet.end()
    this.#streams?.close()
    for (const close of this.#closes) close()
    if (this.#state === undefined) return
    void endEverywhere(new ClientSession(this.#exchange, this.#state))
  }

  receiveFrom(client: ClientRecord, messages: readonly McpMessage[]): boolean {
    return this.receive(messages, this.#exchange.passedOn(ClientView.from(client)))
  }

  /**
   * Takes messages in; answers go to the stream. `exchange`: the request that brought them. False if
   * there are too many.
   */
  receive(messages: readonly McpMessage[], exchange: McpExchange): boolean {
    if (this.#pending + messages.length > mostPending) return false
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
      this.#send(errorText(message.id, codes.invalidRequest, 'initialize comes first'))
      return
    }
    const session = new ClientSession(exchange, this.#state)
    const turn = new Turn(session, this.#outlet, this.#abandon)
    if (message.kind === 'request') this.#send((await turn.answer(message)).text)
    else await turn.notify(message)
    if (message.kind === 'notification' && message.method === 'notifications/initialized') {
      this.#listen(this.#state)
    }
  }

  readonly #abandon = {
    onAbandon: (close: () => void): void => {
      this.#closes.add(close)
    },
  }

  #listen(state: SessionState): void {
    if (this.#streams !== undefined) return
    const session = new ClientSession(this.#exchange, state)
    this.#streams = new ServerStreams(session, this.#outlet, undefined)
    this.#streams.open().catch(() => this.#outlet.end())
  }

  async #initialize(request: McpRequest, exchange: McpExchange): Promise<void> {
    const begun = await beginSession(exchange, request, this.#abandon)
    if ('kind' in begun) {
      const text = typeof begun.body === 'string' ? begun.body : ''
      const isMessage = text.startsWith('{"jsonrpc"')
      this.#send(isMessage ? text : errorText(request.id, codes.internal, 'no server answers'))
      return
    }
    this.#state = begun.state
    this.#send(begun.text)
  }

  #send(text: string): void {
    this.#outlet.send(text)
  }

  #refuse(message: McpMessage, thrown: unknown): void {
    if (thrown instanceof SessionEnded) {
      this.#outlet.end()
      return
    }
    if (message.kind !== 'request') return
    this.#send(errorText(message.id, codes.internal, toFailure(thrown).message))
  }
}

/** GET of such a client. */
export function serveLegacyStream(exchange: McpExchange): Promise<RespondVerdict | undefined> {
  return new LegacyClient(exchange).begin()
}

/** POST of such a client. `text` is what `messages` were read from. */
export async function serveLegacyMessage(
  exchange: McpExchange,
  id: string,
  messages: readonly McpMessage[],
): Promise<RespondVerdict> {
  const { principal, hub } = exchange
  const found = hub.legacyClients.get(id)
  // Every one of this thread is of this class; the others are only known to their threads.
  if (!(found instanceof LegacyClient)) {
    const texts = messages.map(({ text }) => text)
    for (const message of messages) {
      if (message.kind !== 'response') exchange.forMessage().tell(message.method)
    }
    const client = exchange.client.record()
    const isTaken = await hub.passOn({ id, backend: exchange.name, principal, texts, client })
    return isTaken ? accepted : lostSession()
  }
  if (found.backend !== exchange.name || found.principal !== principal) return lostSession()
  if (found.receive(messages, exchange)) return accepted
  return jsonRefusal(429, undefined, codes.internal, 'too many requests are under way')
}

const accepted: RespondVerdict = {
  kind: 'respond',
  status: 202,
  headers: [['content-type', 'text/plain']],
  body: 'Accepted',
  reason: 'Upstream',
}
