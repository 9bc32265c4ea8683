/** Relays to a client what a target sends before the response. */
import {
  clientEventFields,
  type EventFields,
  eventText,
  type McpEvent,
} from '../../event-stream.ts'
import type { McpMessage } from '../../message.ts'
import type { MessageStream } from '../exchange/message-stream.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Relay } from '../target/transport.ts'
import type { Upstreams } from '../upstream/upstreams.ts'
import { messageForClient } from './server-messages.ts'

export class ClientRelay implements Relay {
  readonly #upstreams: Upstreams
  readonly #entry: McpTargetEntry
  readonly #messageStream: MessageStream
  /** Id of the request, as JSON. */
  readonly #request: string

  constructor(
    upstreams: Upstreams,
    entry: McpTargetEntry,
    messageStream: MessageStream,
    request: string,
  ) {
    this.#upstreams = upstreams
    this.#entry = entry
    this.#messageStream = messageStream
    this.#request = request
  }

  #fields(eventFields: EventFields): EventFields | undefined {
    return fieldsForClient(this.#upstreams, this.#entry, this.#request, eventFields)
  }

  onStream(): void {
    this.#messageStream.open()
  }

  onMessage(message: McpMessage, eventFields: EventFields | undefined): void {
    const text = messageForClient(this.#upstreams, this.#entry, message)
    if (text === undefined) return
    this.#messageStream.send(text, eventFields && this.#fields(eventFields))
  }

  onEvent(event: McpEvent): void {
    if (this.#upstreams.era === 'modern') return
    this.#messageStream.sendEvent(eventText({ ...event, id: this.#fields(event)?.id }))
  }

  hold(resume: () => void): boolean {
    const { isSlow } = this.#messageStream
    if (isSlow) this.#messageStream.onDrain(resume)
    return isSlow
  }
}

/** Returns the id and the reconnection time of a target's event, as the client gets them. `request` is its id as JSON. */
export function fieldsForClient(
  { era, exchange }: Upstreams,
  entry: McpTargetEntry,
  request: string,
  eventFields: EventFields | undefined,
): EventFields | undefined {
  const { target } = entry
  // Streams of the modern era cannot be resumed.
  if (eventFields === undefined || era === 'modern') return undefined
  // A response that is resumed would not be guarded.
  if (exchange.callPolicyOf(entry)?.changesResults === true) return undefined
  return exchange.only ? eventFields : clientEventFields(target.name, request, eventFields)
}
