import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { BackendCall } from '../../../proxy/request/backend-call.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { authenticateMcp } from './authenticate.ts'
import type { McpHub } from './hub.ts'
import { McpExchange } from './mcp-exchange.ts'
import { type McpFacts, McpRecord } from './mcp-record.ts'
import { serveMcp } from './serve.ts'

type Answer = RespondVerdict | undefined

/** One request to a backend of MCP servers: it is answered here, and each target gets its own. */
export class McpCall implements BackendCall {
  readonly #context: RequestContext
  readonly #runtime: GatewayRuntime
  readonly #hub: McpHub
  readonly #messages: McpFacts[] = []
  #close: (() => void) | undefined

  constructor(context: RequestContext, runtime: GatewayRuntime, hub: McpHub) {
    this.#context = context
    this.#runtime = runtime
    this.#hub = hub
  }

  /** Each target is resolved when a message is sent to it. */
  resolve(): undefined {
    return undefined
  }

  authenticate(): Answer | Promise<Answer> {
    return authenticateMcp(this.#context, this.#runtime, this.#hub.backends)
  }

  async serve(): Promise<Answer> {
    const call = { messages: this.#messages, onClose: (close: () => void) => (this.#close = close) }
    return serveMcp(new McpExchange(this.#context, this.#runtime, this.#hub, call))
  }

  finish(): void {
    this.#close?.()
  }

  get record(): McpRecord | undefined {
    return this.#messages.length === 0 ? undefined : new McpRecord(this.#messages)
  }
}
