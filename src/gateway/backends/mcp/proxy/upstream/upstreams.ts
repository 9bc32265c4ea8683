import type { McpRequest } from '../../message.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { McpExchange } from '../exchange/mcp-exchange.ts'
import type { McpTargetEntry } from '../target/targets.ts'
import type { Transport } from '../target/transport.ts'
import type { MessageKind } from './lost-session.ts'

/** How the messages of one client reach the targets. Each era of clients has its own implementation. */
export interface Upstreams {
  /** ProtocolEra of the client. */
  readonly era: ProtocolEra
  readonly exchange: McpExchange
  /** What the client declares; undefined if it is not known. */
  readonly capabilities: unknown
  /** Returns the names of the target's capabilities; undefined if they are not known yet. */
  can(target: string): readonly string[] | undefined
  /** Whether the target has something of this client that a notification could concern. */
  has(target: string): boolean
  /** Whether a server may send this request to the client. */
  mayAsk(request: McpRequest): boolean
  /** Goes on with a changed request of the client. Only in the modern era. */
  replaceRequest?(request: McpRequest): void
  /**
   * Calls `act` with a transport to the target, which takes and returns messages of the client's era. `kind` says
   * what `act` sends; a request if omitted.
   */
  use<Result>(
    entry: McpTargetEntry,
    act: (transport: Transport) => Promise<Result>,
    kind?: MessageKind,
  ): Promise<Result>
}
