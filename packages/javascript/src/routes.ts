import { NO_LISTENER, NO_ROUTE } from '../../../src/engines/core/abi.ts'
import { HeadRecord } from '../../../src/engines/core/head-record.ts'
import { CoreInstance } from '../../../src/engines/core/instance.ts'
import { PatternPool } from '../../../src/engines/core/pattern-pool.ts'
import { RouteTable } from '../../../src/engines/core/route-table.ts'

/** How a header or a query parameter is compared. A pattern must match the whole value. */
export interface NamedMatch {
  readonly name: string
  /** `exact` if omitted. */
  readonly type?: 'exact' | 'regex'
  readonly value: string
}

export interface Route {
  /** Returned by `match`. Unique, and small, because it indexes an array; from 0. */
  readonly id: number
  /** `/` if omitted. */
  readonly path?: string
  /** `prefix` if omitted. Prefixes match whole segments. */
  readonly pathType?: 'prefix' | 'exact' | 'regex'
  /** `a.b`, or `*.b` with one or more labels for `*`; any host if omitted. */
  readonly hostname?: string
  /** Any method if omitted. */
  readonly method?: string
  readonly headers?: readonly NamedMatch[]
  readonly query?: readonly NamedMatch[]
  /** Of routes that match equally well, the older one wins, then the one whose name comes first. */
  readonly created?: number
  readonly name?: string
  /** Positions of the rule in its route and of the match in its rule, which decide after the name. */
  readonly ruleIndex?: number
  readonly matchIndex?: number
  /** Only requests for a listener of this scope see the route; 0 if omitted. */
  readonly scope?: number
}

export interface RouterOptions {
  /** The scope of each hostname. If omitted, all hosts have the scope 0. */
  readonly listeners?: Iterable<readonly [hostname: string, scope: number]>
}

export interface MatchedRequest {
  /** `GET` if omitted. */
  readonly method?: string
  /** With or without a port; `localhost` if omitted. */
  readonly host?: string
  readonly headers?: Iterable<readonly [name: string, value: string]>
}

/** An instance for one router. It is collected with it. */
class RouterCore extends CoreInstance {
  readonly patterns = new PatternPool(this)
}

/** Maximum number of characters of a request, all headers included. */
const largestHead = 1 << 20
const maxFields = 4096

/** Selects a route for a request, with the precedence of the Gateway API. */
export class Router {
  readonly #routes: readonly Route[]
  readonly #listeners: readonly (readonly [string, number])[]
  #core = new RouterCore()
  #table: RouteTable
  #head: HeadRecord

  /** @throws Error if a route cannot be added. */
  constructor(routes: Iterable<Route>, options: RouterOptions = {}) {
    this.#routes = [...routes]
    this.#listeners = [...(options.listeners ?? [['', 0] as const])]
    this.#table = this.#build()
    this.#head = new HeadRecord(this.#core, 128, 16_384)
  }

  /**
   * The id of the route for a request, or undefined. `path` may have a query.
   * @throws RangeError if the request is larger than 1 MiB, or has characters that no HTTP head can have.
   */
  match(path: string, request: MatchedRequest = {}): number | undefined {
    if (this.#core.trap !== undefined) this.#restart()
    const id = this.#table.match(this.#assign(path, request))
    return id === NO_ROUTE || id === NO_LISTENER ? undefined : id
  }

  /** Writes a request to the record, or to a larger one if it does not fit. */
  #assign(
    path: string,
    { method = 'GET', host = 'localhost', headers = [] }: MatchedRequest,
  ): HeadRecord {
    const mark = path.indexOf('?')
    const fields = [...headers]
    const texts = [path, method, host, ...fields.flat()]
    const size = texts.reduce((sum, { length }) => sum + length, 0)
    if (
      size > largestHead ||
      fields.length > maxFields ||
      texts.some((text) => /[\u0100-\uffff]/.test(text))
    ) {
      throw new RangeError('the request is too large, or has characters that are not Latin-1')
    }
    const assigned = {
      method,
      authority: host,
      path: mark < 0 ? path : path.slice(0, mark),
      query: mark < 0 ? undefined : path.slice(mark + 1),
      headers: fields,
    }
    this.#core.refresh()
    if (!this.#head.assign(assigned)) {
      this.#head = new HeadRecord(this.#core, maxFields, largestHead)
      this.#head.assign(assigned)
    }
    return this.#head
  }

  #restart(): void {
    this.#core = new RouterCore()
    this.#table = this.#build()
    this.#head = new HeadRecord(this.#core, 128, 16_384)
  }

  #build(): RouteTable {
    const table = new RouteTable(this.#core, { keepsSpecs: false })
    for (const [hostname, scope] of this.#listeners) expectOk(table.addListener(hostname, scope))
    for (const route of this.#routes) expectOk(table.addRoute(specificationOf(route)))
    return table
  }
}

function expectOk(outcome: ReturnType<RouteTable['addRoute']>): void {
  if (!outcome.ok) throw new Error(outcome.problems[0]?.message ?? 'the route cannot be added')
}

const namedOf = ({ name, type = 'exact', value }: NamedMatch) => ({ name, type, value })

const specificationOf = (route: Route) => ({
  id: route.id,
  scope: route.scope ?? 0,
  hostname: route.hostname,
  path: { type: route.pathType ?? 'prefix', value: route.path ?? '/' },
  method: route.method,
  headers: route.headers?.map(namedOf),
  query: route.query?.map(namedOf),
  createdAt: route.created ?? 0,
  name: route.name ?? `default/${String(route.id).padStart(10, '0')}`,
  ruleIndex: route.ruleIndex ?? 0,
  matchIndex: route.matchIndex ?? 0,
})
