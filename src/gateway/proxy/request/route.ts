/** Finds the listener and the rule of a request in the route table of the WASM core. */
import { NO_LISTENER } from '../../../engines/core/abi.ts'
import type { HeadRecord } from '../../../engines/core/head-record.ts'
import type { IoCore } from '../../../engines/core/io-core.ts'
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { PortTable } from '../config/port-table.ts'
import type { ConfigStore } from '../config/store.ts'
import type { RequestContext } from './request-context.ts'

/** Capacity for heads that are written into the core. It fits the largest head that the engine accepts. */
const maxFields = 4096
const textBytes = 256 * 1024

interface StartLine {
  readonly method: string
  readonly path: string
}

/** Request heads in the memory of the core, where routes are matched. */
export class MatchableHeads {
  readonly #read: HeadRecord
  readonly #core: IoCore
  #written: HeadRecord | undefined

  /** `read`: the record into which the engine reads request heads. */
  constructor(core: IoCore, read: HeadRecord) {
    this.#core = core
    this.#read = read
  }

  /**
   * Returns the head as the engine has just read it, without a copy. If that was overwritten, writes the
   * head again.
   */
  current(exchange: ServerExchange): HeadRecord {
    return exchange.headIsFresh ? this.#read : this.written(exchange)
  }

  /**
   * Writes the head of a request, or one with another start line. @throws GatewayError `headers_too_large`
   */
  written({ request }: ServerExchange, { method, path }: StartLine = request): HeadRecord {
    this.#written ??= this.#core.createHead({ maxFields, textBytes })
    const { authority, query, headers } = request
    const head = { method, authority, path, query, headers: headers.entries() }
    if (!this.#written.assign(head)) throw new GatewayError('headers_too_large')
    return this.#written
  }
}

/**
 * Sets the listener of the request, if one matches the host, and remembers the route for
 * `findRoute`. Throws `misdirected` if the TLS connection was made for another listener (RFC 9110
 * 15.5.20).
 */
export function findListener(
  context: RequestContext,
  config: ConfigStore,
  heads: MatchableHeads,
): void {
  const { tls } = context.exchange
  const table = tableOf(context, config)
  if (table === undefined) return
  // If the head was changed, the record of the engine is outdated.
  const isEdited = context.original !== undefined
  const head = isEdited ? heads.written(context.exchange) : heads.current(context.exchange)
  const id = table.routes.match(head)
  if (id === NO_LISTENER) return
  const listener = table.listener(head.scope)
  if (tls !== undefined && listener?.resource.key !== tls.listener) {
    throw new GatewayError('misdirected')
  }
  context.listener = listener
  context.routeId = id
  context.isRouteKnown = true
}

/** Returns the rule that matches the head as it was received; undefined if there is none. */
export function placementAhead(
  context: RequestContext,
  config: ConfigStore,
): RulePlacement | undefined {
  const table = tableOf(context, config)
  return context.routeId < 0 ? undefined : table?.entry(context.routeId)?.placement
}

/** Returns the rule that matches the head as it is now; undefined if there is none. */
export function placementNow(
  context: RequestContext,
  { config, heads }: { readonly config: ConfigStore; readonly heads: MatchableHeads },
): RulePlacement | undefined {
  const table = tableOf(context, config)
  if (table === undefined || context.listener === undefined) return undefined
  const id = table.routes.matchInScope(context.listener.scope, heads.written(context.exchange))
  return id < 0 ? undefined : table.entry(id)?.placement
}

/** Sets the rule that matches the request, if there is one, and the matched prefix. */
export function findRoute(
  context: RequestContext,
  config: ConfigStore,
  heads: MatchableHeads,
): void {
  const table = tableOf(context, config)
  if (table === undefined || context.listener === undefined) return
  // The listener may have been changed or removed while steps ran.
  if (table.listener(context.listener.scope) !== context.listener) {
    findListener(context, config, heads)
  }
  const id = context.isRouteKnown
    ? context.routeId
    : table.routes.matchInScope(context.listener.scope, heads.written(context.exchange))
  context.routed = id < 0 ? undefined : table.entry(id)
}

/**
 * Finds the rule for another method and path. If `accepts` returns true for it, it replaces the rule of the
 * request.
 */
export function rerouteTo(
  context: RequestContext,
  { config, heads }: { readonly config: ConfigStore; readonly heads: MatchableHeads },
  head: StartLine,
  accepts: (placement: RulePlacement) => boolean,
): void {
  const table = tableOf(context, config)
  if (table === undefined || context.listener === undefined) return
  const id = table.routes.matchInScope(
    context.listener.scope,
    heads.written(context.exchange, head),
  )
  const entry = id < 0 ? undefined : table.entry(id)
  if (entry !== undefined && accepts(entry.placement)) context.routed = entry
}

/**
 * Returns the table for the port and scheme of the connection. The authority of the request does not matter.
 */
function tableOf({ exchange }: RequestContext, config: ConfigStore): PortTable | undefined {
  return config.port(exchange.port, exchange.tls === undefined ? 'http' : 'https')
}
