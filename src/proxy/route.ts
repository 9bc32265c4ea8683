/** Which listener and which rule a request belongs to: the WASM core decides, this asks it. */
import { NO_LISTENER } from '../core/abi.ts'
import type { HeadRecord } from '../core/head-record.ts'
import type { IoCore } from '../core/io-core.ts'
import type { ServerExchange } from '../engine/types.ts'
import { GatewayError } from '../errors.ts'
import type { RulePlacement } from './config/placement.ts'
import type { ConfigStore } from './config/store.ts'
import type { Walk } from './walk.ts'

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
 * Sets the walk's listener, if one takes the host, and remembers the route for `findRoute`. Throws
 * `misdirected` where the TLS connection was made for another listener (RFC 9110 15.5.20).
 */
export function findListener(walk: Walk, config: ConfigStore, heads: MatchableHeads): void {
  const { port, tls } = walk.exchange
  const table = config.port(port, schemeOf(walk))
  if (table === undefined) return
  // After an edit the record of the engine no longer is the head.
  const isEdited = walk.original !== undefined
  const head = isEdited ? heads.written(walk.exchange) : heads.current(walk.exchange)
  const id = table.routes.match(head)
  if (id === NO_LISTENER) return
  const listener = table.listener(head.scope)
  if (tls !== undefined && listener?.resource.key !== tls.listener) {
    throw new GatewayError('misdirected')
  }
  walk.listener = listener
  walk.routeId = id
  walk.isRouteKnown = true
}

/** Where the request lands as its head came; undefined if no rule matches. */
export function placementAhead(walk: Walk, config: ConfigStore): RulePlacement | undefined {
  const table = config.port(walk.exchange.port, schemeOf(walk))
  return walk.routeId < 0 ? undefined : table?.entry(walk.routeId)?.placement
}

/** Sets the walk's rule, if one matches, and the prefix by which it did. */
export function findRoute(walk: Walk, config: ConfigStore, heads: MatchableHeads): void {
  const { port } = walk.exchange
  const table = config.port(port, schemeOf(walk))
  if (table === undefined || walk.listener === undefined) return
  // Steps may have taken time, and the listener may have been changed or removed meanwhile.
  if (table.listener(walk.listener.scope) !== walk.listener) findListener(walk, config, heads)
  const id = walk.isRouteKnown
    ? walk.routeId
    : table.routes.matchInScope(walk.listener.scope, heads.written(walk.exchange))
  const entry = id < 0 ? undefined : table.entry(id)
  walk.placement = entry?.placement
  walk.prefix = entry?.prefix
  walk.cookiePath = entry?.cookiePath
}

/** Replaces the walk's rule by the one that would match another method and path, if it will do. */
export function rerouteTo(
  walk: Walk,
  { config, heads }: { readonly config: ConfigStore; readonly heads: MatchableHeads },
  head: StartLine,
  willDo: (placement: RulePlacement) => boolean,
): void {
  const table = config.port(walk.exchange.port, schemeOf(walk))
  if (table === undefined || walk.listener === undefined) return
  const id = table.routes.matchInScope(walk.listener.scope, heads.written(walk.exchange, head))
  const entry = id < 0 ? undefined : table.entry(id)
  if (entry === undefined || !willDo(entry.placement)) return
  walk.placement = entry.placement
  walk.prefix = entry.prefix
  walk.cookiePath = entry.cookiePath
}

/** Of the connection, whatever the request now says. */
function schemeOf({ exchange }: Walk): 'http' | 'https' {
  return exchange.tls === undefined ? 'http' : 'https'
}
