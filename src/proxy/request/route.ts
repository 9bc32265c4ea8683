/** Which listener and which rule a request belongs to: the WASM core decides, this asks it. */
import { NO_LISTENER } from '../../core/abi.ts'
import type { HeadRecord } from '../../core/head-record.ts'
import type { IoCore } from '../../core/io-core.ts'
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import { GatewayError } from '../../errors/index.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { ConfigStore } from '../config/store.ts'
import type { RequestContext } from './request-context.ts'

/** Room for a head that is written into the core by hand: what the engine admits at most. */
const maxFields = 4096
const textBytes = 256 * 1024

interface StartLine {
  readonly method: string
  readonly path: string
}

/** Heads in the form that the core can match. */
export class MatchableHeads {
  readonly #read: HeadRecord
  readonly #core: IoCore
  #written: HeadRecord | undefined

  /** `read`: the record into which the engine reads request heads. */
  constructor(core: IoCore, read: HeadRecord) {
    this.#core = core
    this.#read = read
  }

  /** The head as the engine has just read it, without a copy; else written anew. */
  current(exchange: ServerExchange): HeadRecord {
    return exchange.headIsFresh ? this.#read : this.written(exchange)
  }

  /** The head with all edits, or as if it had another method and path. Throws `headers_too_large` where it has outgrown its room. */
  written({ request }: ServerExchange, { method, path }: StartLine = request): HeadRecord {
    this.#written ??= this.#core.createHead({ maxFields, textBytes })
    const { authority, query, headers } = request
    const fits = this.#written.assign({
      method,
      authority,
      path,
      query,
      headers: headers.entries(),
    })
    if (!fits) throw new GatewayError('headers_too_large')
    return this.#written
  }
}

/**
 * Sets the listener of the request, if one takes the host, and remembers the route for `findRoute`. Throws
 * `misdirected` where the TLS connection was made for another listener (RFC 9110 15.5.20).
 */
export function findListener(
  context: RequestContext,
  config: ConfigStore,
  heads: MatchableHeads,
): void {
  const { port, tls } = context.exchange
  const table = config.port(port, schemeOf(context))
  if (table === undefined) return
  // After an edit the record of the engine no longer is the head.
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

/** Where the request lands as its head came; undefined if no rule matches. */
export function placementAhead(
  context: RequestContext,
  config: ConfigStore,
): RulePlacement | undefined {
  const table = config.port(context.exchange.port, schemeOf(context))
  return context.routeId < 0 ? undefined : table?.entry(context.routeId)?.placement
}

/** Sets the rule of the request, if one matches, and the prefix by which it did. */
export function findRoute(
  context: RequestContext,
  config: ConfigStore,
  heads: MatchableHeads,
): void {
  const { port } = context.exchange
  const table = config.port(port, schemeOf(context))
  if (table === undefined || context.listener === undefined) return
  // Steps may have taken time, and the listener may have been changed or removed meanwhile.
  if (table.listener(context.listener.scope) !== context.listener)
    findListener(context, config, heads)
  const id = context.isRouteKnown
    ? context.routeId
    : table.routes.matchInScope(context.listener.scope, heads.written(context.exchange))
  const entry = id < 0 ? undefined : table.entry(id)
  context.placement = entry?.placement
  context.prefix = entry?.prefix
  context.cookiePath = entry?.cookiePath
}

/** Replaces the rule of the request by the one that would match another method and path, if it will do. */
export function rerouteTo(
  context: RequestContext,
  { config, heads }: { readonly config: ConfigStore; readonly heads: MatchableHeads },
  head: StartLine,
  willDo: (placement: RulePlacement) => boolean,
): void {
  const table = config.port(context.exchange.port, schemeOf(context))
  if (table === undefined || context.listener === undefined) return
  const id = table.routes.matchInScope(
    context.listener.scope,
    heads.written(context.exchange, head),
  )
  const entry = id < 0 ? undefined : table.entry(id)
  if (entry === undefined || !willDo(entry.placement)) return
  context.placement = entry.placement
  context.prefix = entry.prefix
  context.cookiePath = entry.cookiePath
}

/** Of the connection, whatever the request now says. */
function schemeOf({ exchange }: RequestContext): 'http' | 'https' {
  return exchange.tls === undefined ? 'http' : 'https'
}
