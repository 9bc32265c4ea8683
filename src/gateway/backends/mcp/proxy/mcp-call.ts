/** Serves requests to a backend of MCP servers (streamable HTTP). */
import { andThen } from '../../../../ground/base/and-then.ts'
import type { RespondVerdict, Verdict } from '../../../../ground/exchange/exchange.ts'
import type { BackendCall } from '../../../proxy/request/backend-call.ts'
import { usableAccess } from '../../../proxy/request/destinations.ts'
import type { RequestContext } from '../../../proxy/request/request-context.ts'
import type { GatewayRuntime } from '../../../proxy/request/runtime.ts'
import { codes } from '../json-rpc.ts'
import { authenticateMcp } from './client/authenticate.ts'
import { checkRequest } from './client/checks.ts'
import { serveGet } from './client/get.ts'
import { opensOlderStream, serveOlderStream } from './client/older-transport.ts'
import { servePost } from './client/post.ts'
import { GuardChecks } from './exchange/guard-checks.ts'
import { hasRules, McpExchange, type McpNotes } from './exchange/mcp-exchange.ts'
import { type McpDetails, McpRecord } from './exchange/mcp-record.ts'
import { jsonRefusal } from './exchange/refusals.ts'
import type { McpSharedState } from './session/shared-state.ts'
import { toFailure } from './target/target-failure.ts'
import { withLimit } from './target/transport.ts'
import { endEverywhere, findSession } from './upstream/client-session.ts'

/** How long a client waits until all servers have ended its session. */
const deleteMs = 1_000

type Result = RespondVerdict | undefined

const none: readonly McpDetails[] = []

interface Closing {
  readonly close: () => void
  readonly next: Closing | undefined
}

/** One request of a client. The gateway responds itself, and sends its own requests to the targets. */
export class McpCall implements BackendCall, McpNotes {
  readonly #context: RequestContext
  readonly #runtime: GatewayRuntime
  readonly #shared: McpSharedState
  /** Log entries, one for each message. */
  #messages: readonly McpDetails[] = none
  readonly checks = new GuardChecks()
  /** Functions to call at the end, from the last one back. */
  #closing: Closing | undefined

  constructor(context: RequestContext, runtime: GatewayRuntime, shared: McpSharedState) {
    this.#context = context
    this.#runtime = runtime
    this.#shared = shared
  }

  /** Targets are resolved when messages are sent to them. */
  resolve(): undefined {
    return undefined
  }

  authenticate(): Result | Promise<Result> {
    return authenticateMcp(this.#context, this.#runtime, this.#shared.backends)
  }

  serve(): Result | Promise<Result> {
    return serveMcp(new McpExchange(this.#context, this.#runtime, this.#shared, this))
  }

  note(details: McpDetails, before: McpDetails | undefined): void {
    const at = before === undefined ? -1 : this.#messages.indexOf(before)
    this.#messages = at < 0 ? [...this.#messages, details] : this.#messages.with(at, details)
  }

  onClose(close: () => void): void {
    this.#closing = { close, next: this.#closing }
  }

  finish(): void {
    for (let one = this.#closing; one !== undefined; one = one.next) one.close()
  }

  get record(): McpRecord | undefined {
    return this.#messages.length === 0 ? undefined : new McpRecord(this.#messages, this.checks)
  }
}

/** Serves a request by its method. Returns undefined once a stream has begun. */
function serveMcp(exchange: McpExchange): Result | Promise<Result> {
  const { context } = exchange
  const access = usableAccess(exchange.placement, exchange.chosen)
  context.keepOriginal()
  const guard = access.policies.steps.find(hasRules)
  return andThen(guard?.onRequest?.(context.exchange), serveAllowed, exchange)
}

function serveAllowed(
  verdict: Verdict | undefined,
  exchange: McpExchange,
): Result | Promise<Result> {
  const { context } = exchange
  if (context.over) return undefined
  if (verdict?.kind === 'respond') return verdict
  const refused = checkRequest(exchange)
  if (refused !== undefined) return refused
  if (exchange.view.isHidden) {
    const message = 'nothing is served here for this client'
    return jsonRefusal(404, undefined, codes.invalidRequest, message)
  }
  if (exchange.backend.targets.length === 0) {
    const reason = 'NoHealthyBackend'
    return jsonRefusal(503, undefined, codes.internal, 'no server is there', { reason })
  }
  switch (context.exchange.request.method) {
    case 'POST':
      return servePost(exchange)
    case 'GET':
      return opensOlderStream(exchange) ? serveOlderStream(exchange) : serveGet(exchange)
    default:
      return serveDelete(exchange)
  }
}

/** Serves a DELETE: ends the session at every server. */
async function serveDelete(exchange: McpExchange): Promise<RespondVerdict> {
  const session = findSession(exchange)
  if ('kind' in session) return session
  const ends = endEverywhere(session)
  exchange.shared.end(session.state)
  // A silent server does not keep the client waiting.
  await withLimit(ends, deleteMs, () => {}).catch(toFailure)
  return { kind: 'respond', status: 200, reason: 'Upstream' }
}
