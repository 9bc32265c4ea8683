/**
 * One request of a legacy client to a modern server. If the server needs input, the gateway asks the client
 * with requests of their own on the stream of the response, and then sends the request again.
 */

import {
  type InputRequired,
  inputRequired,
  legacyParams,
  type RetryInput,
} from '../../eras/legacy-to-modern.ts'
import type { EventFields } from '../../event-stream.ts'
import { gatewayRequestId, newId } from '../../ids.ts'
import { jsonValue, member, rawOf } from '../../json/node.ts'
import { codes, errorText, requestText } from '../../json-rpc.ts'
import {
  type McpMessage,
  type McpRequest,
  type McpResponse,
  readMessage,
  readResponse,
  responseTo,
  withId,
} from '../../message.ts'
import type { CrossThreadCalls } from '../session/cross-thread-calls.ts'
import { LateFlow } from '../target/late-flow.ts'
import { passResponse, type ResponseListener } from '../target/response-reader.ts'
import { endedEarly, TargetFailure } from '../target/target-failure.ts'
import { errorResponse, type Flow } from '../target/transport.ts'

/** Maximum number of rounds of one request, and of requests of a server in one round. */
const maxRounds = 32
const maxRequests = 32

interface MultiRoundTripParts {
  readonly calls: CrossThreadCalls
  /** Returns the key by which the client's responses and cancellations are found. `id` is JSON. */
  key(id: string): string
  /** Sends the request with another id, and with the input of the round before. */
  send(id: string, listener: ResponseListener, round: RetryInput | undefined): Flow | Promise<Flow>
}

export class MultiRoundTripCall extends LateFlow implements ResponseListener {
  readonly #request: McpRequest
  readonly #listener: ResponseListener
  readonly #parts: MultiRoundTripParts
  readonly #stops = new Set<() => void>()
  /** Id of the request that is under way, as JSON; undefined while the client is asked. */
  #id: string | undefined
  #rounds = 0

  constructor(request: McpRequest, listener: ResponseListener, parts: MultiRoundTripParts) {
    super()
    this.#request = request
    this.#listener = listener
    this.#parts = parts
  }

  async begin(): Promise<void> {
    const { calls, key } = this.#parts
    this.#stops.add(calls.run(key(this.#request.id), () => this.#cancel()))
    await this.#send(this.#request.id, undefined)
  }

  async #send(id: string, round: RetryInput | undefined): Promise<void> {
    this.#id = id
    this.attach(await this.#parts.send(id, this, round))
  }

  onStream(): void {
    if (!this.isOver) this.#listener.onStream?.()
  }

  onMessage(message: McpMessage, eventFields?: EventFields): void {
    if (this.isOver) return
    // Modern servers send no requests.
    if (message.kind === 'request') return
    if (message.kind === 'notification') {
      this.#listener.onMessage?.(message, eventFields)
      return
    }
    const response = this.#id === undefined ? undefined : responseTo(message, this.#id)
    if (response === undefined) return
    const needed = inputRequired(response)
    if (needed === undefined) this.#finish(withId(response, this.#request.id))
    else void this.#ask(needed)
  }

  onEnd(): void {
    // The response to a request may end before the client has responded.
    if (this.#id === undefined || this.isOver) return
    this.#fail(endedEarly())
  }

  onFailure(failure: TargetFailure): void {
    if (this.#id === undefined || this.isOver) return
    const response = errorResponse(failure, this.#id)
    if (response === undefined) this.#fail(failure)
    else this.#finish(withId(response, this.#request.id))
  }

  /** Asks the client for what the server needs, and sends the request again with it. */
  async #ask({ requests, state }: InputRequired): Promise<void> {
    this.#id = undefined
    this.#rounds += 1
    if (this.#rounds > maxRounds || requests.length > maxRequests) {
      this.#refuse('the server asks too often')
      return
    }
    this.#listener.onStream?.()
    const given = await Promise.all(requests.map((one) => this.#askClient(one)))
    if (this.isOver) return
    const responses: Record<string, unknown> = {}
    for (const [at, { key }] of requests.entries()) {
      const { text = '', result, error } = given[at] ?? {}
      if (result === undefined) {
        const told = error && member(error, 'message')
        this.#refuse(`the client has refused: ${told ? rawOf(text, told) : 'no reason given'}`)
        return
      }
      responses[key] = jsonValue(text, result)
    }
    const id = gatewayRequestId()
    await this.#send(id, { responses, state }).catch((thrown) => this.#fail(thrown))
  }

  /** Sends a request to the client on the stream of the response. Resolves to the client's response. */
  #askClient(asked: InputRequired['requests'][number]): Promise<McpResponse> {
    const name = `sluice/${newId()}`
    const id = JSON.stringify(name)
    const { calls, key } = this.#parts
    return new Promise((resolve) => {
      const stop = calls.expect(key(id), (text) => {
        stop()
        const response = readResponse(text)
        if (response !== undefined) resolve(response)
      })
      this.#stops.add(stop)
      const text = requestText(id, asked.method, legacyParams(asked, name))
      this.#listener.onMessage?.(readMessage(text), undefined)
    })
  }

  #refuse(message: string): void {
    this.#finish(errorText(this.#request.id, codes.internal, message))
  }

  #finish(text: string): void {
    this.end()
    passResponse(this.#listener, text)
  }

  #fail(failure: TargetFailure): void {
    if (this.isOver) return
    this.end()
    this.#listener.onFailure(failure)
  }

  /** The client wants no response any more, but waits for the end of the response. */
  #cancel(): void {
    if (this.isOver) return
    this.close()
    this.#listener.onFailure(new TargetFailure('the client has cancelled the request'))
  }

  protected override end(): void {
    super.end()
    for (const stop of this.#stops) stop()
    this.#stops.clear()
  }
}
