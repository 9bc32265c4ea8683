import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { ERROR_ARGUMENT, NO_LISTENER, NO_ROUTE } from './abi.ts'
import { CoreError, nameOfCode } from './errors.ts'
import type { HeadRecord } from './head-record.ts'
import type { CoreProblem, CoreWithPatterns } from './pattern-pool.ts'
import { encodeRoute, hostKey, type RouteSpec, regexSources } from './route-spec.ts'

export interface RouteTableOptions {
  /**
   * Whether to keep routes as they were added, for `copyTo`. Default true. A host that can add them
   * again itself passes false to save memory.
   */
  readonly keepsSpecs?: boolean
}

/** Shared list for routes without regexes. */
const noSources: readonly string[] = []

/**
 * Listeners and routes of one port. The cost of adding or removing an entry does not depend on the
 * size of the table. Matching allocates nothing.
 */
export class RouteTable {
  readonly #core: CoreWithPatterns
  readonly #handle: number
  /** Routes, or only their regex sources, by id. Deleting from a Map of this size takes microseconds. */
  readonly #present: (RouteSpec | readonly string[] | undefined)[] = []
  readonly #keepsSpecs: boolean
  #size = 0
  readonly #listeners = new Map<string, number>()

  /** Call `IoCore.createRouteTable` instead. Throws CoreError if there is no room. */
  constructor(core: CoreWithPatterns, { keepsSpecs = true }: RouteTableOptions = {}) {
    this.#core = core
    this.#keepsSpecs = keepsSpecs
    this.#handle = core.run('table_new', (exports) => exports.table_new())
    if (this.#handle < 0) throw new CoreError(this.#handle, 'making a route table')
  }

  get size(): number {
    return this.#size
  }

  /** Runs a call that gets the address of a copy of `bytes` in the core's memory. */
  #withBytes(during: string, bytes: Buffer, call: (address: number) => number): number {
    return this.#core.withScratch(bytes.length + 16, (address) => {
      this.#core.bytes.set(bytes, address)
      return this.#core.run(during, () => call(address))
    })
  }

  #outcomeOf(code: number, about: string): Outcome<undefined, CoreProblem> {
    return code < 0 ? fail({ code, message: `${about}: ${nameOfCode(code)}` }) : succeed(undefined)
  }

  /**
   * Assigns requests for a hostname to `scope`, a number from 0 that the host chooses. The hostname is
   * `a.b`, `*.b`, or undefined for all other hostnames. Fails with ERROR_DUPLICATE if the hostname was
   * added before, and with ERROR_MEMORY if there is no room.
   */
  addListener(hostname: string | undefined, scope: number): Outcome<undefined, CoreProblem> {
    const { kind, text } = hostKey(hostname)
    const bytes = Buffer.from(text)
    const code = this.#withBytes('listener_add', bytes, (address) =>
      this.#core.exports.listener_add(this.#handle, kind, address, bytes.length, scope),
    )
    if (code === 0) this.#listeners.set((hostname ?? '').toLowerCase(), scope)
    return this.#outcomeOf(code, `listener ${hostname ?? '*'}`)
  }

  /** Removes a listener's hostname but not its routes. Returns false if the hostname is unknown. */
  removeListener(hostname: string | undefined): boolean {
    const { kind, text } = hostKey(hostname)
    const bytes = Buffer.from(text)
    const code = this.#withBytes('listener_remove', bytes, (address) =>
      this.#core.exports.listener_remove(this.#handle, kind, address, bytes.length),
    )
    this.#listeners.delete((hostname ?? '').toLowerCase())
    return code === 0
  }

  /** Adds a route. Fails without a change for a bad regex or path, a taken id, or lack of room. */
  addRoute(spec: RouteSpec): Outcome<undefined, CoreProblem> {
    const handles: number[] = []
    const taken: string[] = []
    for (const source of regexSources(spec)) {
      const pattern = this.#core.patterns.acquire(source)
      if (!pattern.ok) {
        this.#release(taken)
        return pattern
      }
      taken.push(source)
      handles.push(pattern.value)
    }
    const bytes = encodeRoute(spec, handles)
    const code = this.#withBytes('route_add', bytes, (address) =>
      this.#core.exports.route_add(this.#handle, address, bytes.length),
    )
    if (code === 0) {
      const sources = taken.length > 0 ? taken : noSources
      this.#present[spec.id] = this.#keepsSpecs ? spec : sources
      this.#size++
    } else {
      this.#release(taken)
    }
    return this.#outcomeOf(
      code,
      `route ${spec.name} rule ${spec.ruleIndex} match ${spec.matchIndex}`,
    )
  }

  #specs(): RouteSpec[] {
    return this.#present.filter((route) => route !== undefined && 'id' in route)
  }

  #release(sources: readonly string[]): void {
    for (const source of sources) this.#core.patterns.release(source)
  }

  /** Returns false if no route has this id. */
  removeRoute(id: number): boolean {
    const route = this.#present[id]
    if (route === undefined) return false
    this.#core.run('route_remove', (exports) => exports.route_remove(this.#handle, id))
    this.#present[id] = undefined
    this.#size--
    this.#release(sourcesOf(route))
    return true
  }

  /**
   * Returns the id of the route for the request in the record, or NO_LISTENER or NO_ROUTE. Also writes
   * the scope and the id to the record. Throws CoreTrap.
   */
  match(head: HeadRecord): number {
    if (this.#core.trap !== undefined) throw this.#core.trap
    try {
      return this.#checked(this.#core.exports.match_request(this.#handle, head.address))
    } catch (error) {
      throw this.#core.failed('match_request', error)
    }
  }

  /** Returns the scope of the request's listener, or NO_LISTENER. */
  matchListener(head: HeadRecord): number {
    const code = this.#core.run('match_listener', (exports) =>
      exports.match_listener(this.#handle, head.address),
    )
    return this.#checked(code)
  }

  /** Returns the route in a scope that is known from SNI, or from the first match of an edited request. */
  matchInScope(scope: number, head: HeadRecord): number {
    const code = this.#core.run('match_route', (exports) =>
      exports.match_route(this.#handle, scope, head.address),
    )
    return this.#checked(code)
  }

  #checked(code: number): number {
    if (code < 0 && code !== NO_LISTENER && code !== NO_ROUTE) throw new CoreError(code, 'matching')
    return code
  }

  /**
   * Adds the same listeners and routes to another core, for example after a trap. Throws CoreError,
   * also if this table does not keep specs.
   */
  copyTo(core: CoreWithPatterns): RouteTable {
    if (!this.#keepsSpecs) throw new CoreError(ERROR_ARGUMENT, 'copying a table without its specs')
    const copy = new RouteTable(core)
    const outcomes = [
      ...[...this.#listeners].map(([hostname, scope]) => copy.addListener(hostname, scope)),
      ...this.#specs().map((spec) => copy.addRoute(spec)),
    ]
    for (const outcome of outcomes) {
      if (!outcome.ok) throw new CoreError(outcome.problems[0]?.code ?? -1, 'copying a route table')
    }
    return copy
  }

  /** Frees the table's memory; the table must not be used again. */
  free(): void {
    this.#core.run('table_free', (exports) => exports.table_free(this.#handle))
    for (const route of this.#present) if (route !== undefined) this.#release(sourcesOf(route))
    this.#present.length = 0
    this.#size = 0
  }
}

const sourcesOf = (route: RouteSpec | readonly string[]): readonly string[] =>
  'id' in route ? regexSources(route) : route
