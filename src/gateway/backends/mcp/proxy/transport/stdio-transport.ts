/**
 * A target that is a command. The process that runs it speaks streamable HTTP, so messages go there as to any other
 * server once it knows the command.
 */
import type { EventFields, McpEvent } from '../../event-stream.ts'
import type { McpMessage } from '../../message.ts'
import { stdioHeaders } from '../../stdio/settings.ts'
import { LateFlow } from '../target/late-flow.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import type { StdioDefinition, StdioHostClient } from '../target/stdio-host.ts'
import { TargetFailure, toFailure } from '../target/target-failure.ts'
import type { Flow, OutgoingMessage } from '../target/transport.ts'
import { StreamableTransport } from './streamable.ts'

/** Statuses by which the process says that it has done nothing, because it has started again. */
const restartedStatuses = [401, 421]

export class StdioTransport extends StreamableTransport {
  #host: StdioHostClient | undefined
  #definition: StdioDefinition | undefined

  override get path(): string | undefined {
    return this.#definition?.path
  }

  protected override ownHeaders(): readonly (readonly [string, string])[] {
    return [
      [stdioHeaders.token, this.#host?.token ?? ''],
      // Set in any case, so that a client cannot.
      [stdioHeaders.principal, this.exchange.principal ?? ''],
    ]
  }

  override post(message: OutgoingMessage, listener: ResponseListener): Flow | Promise<Flow> {
    const first = new RestartListener(listener, async () => {
      if (this.#definition !== undefined) this.#host?.forget(this.#definition)
      return this.#defined(() => super.post(message, listener))
    })
    return first.begin(this.#defined(() => super.post(message, first)))
  }

  override async listen(listener: ResponseListener, from: string | undefined): Promise<Flow> {
    return this.#defined(() => super.listen(listener, from))
  }

  /** Sends once the process knows the command. Rejects with a TargetFailure if the gateway does not run it. */
  #defined(send: () => Flow | Promise<Flow>): Flow | Promise<Flow> {
    try {
      const { host, definition } = this.#find()
      return definition.isKnown ? send() : host.define(definition).then(send)
    } catch (thrown) {
      return Promise.reject(thrown)
    }
  }

  #find(): { readonly host: StdioHostClient; readonly definition: StdioDefinition } {
    const { stdioHost } = this.exchange.shared
    if (stdioHost === undefined) {
      const settings = '--stdio-servers of sluice run, spec.stdio of GatewayParameters'
      throw new TargetFailure(`this gateway runs no commands (${settings})`)
    }
    const [namespace = ''] = this.exchange.name.split('/')
    const refusal = stdioHost.refusal(namespace)
    if (refusal !== undefined) throw new TargetFailure(refusal)
    this.#host = stdioHost
    this.#definition ??= stdioHost.definitionOf(this.entry, this.exchange.name)
    return { host: stdioHost, definition: this.#definition }
  }
}

/** Sends a message again that the process has not accepted, once. */
class RestartListener extends LateFlow implements ResponseListener {
  readonly #listener: ResponseListener
  readonly #again: () => Promise<Flow>
  #isRepeated = false

  constructor(listener: ResponseListener, again: () => Promise<Flow>) {
    super()
    this.#listener = listener
    this.#again = again
  }

  begin(flow: Flow | Promise<Flow>): Flow | Promise<Flow> {
    const attach = (one: Flow) => {
      if (!this.#isRepeated) this.attach(one)
      return this
    }
    return flow instanceof Promise ? flow.then(attach) : attach(flow)
  }

  onSession(id: string): void {
    this.#listener.onSession?.(id)
  }

  onStream(): void {
    this.#listener.onStream?.()
  }

  onMessage(message: McpMessage, eventFields: EventFields | undefined): void {
    this.#listener.onMessage?.(message, eventFields)
  }

  onEvent(event: McpEvent): void {
    this.#listener.onEvent?.(event)
  }

  onEnd(): void {
    this.#listener.onEnd()
  }

  onFailure(failure: TargetFailure): void {
    const status = failure.httpResponse?.status ?? 0
    if (this.#isRepeated || !restartedStatuses.includes(status)) {
      this.#listener.onFailure(failure)
      return
    }
    this.#isRepeated = true
    this.#again().then(
      (flow) => this.attach(flow),
      (thrown) => this.#listener.onFailure(toFailure(thrown)),
    )
  }
}
