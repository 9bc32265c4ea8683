/** The head of a simulated request. It can be edited as the engine's can, with the same checks. */

import { GatewayError } from '../../ground/errors/index.ts'
import type { RequestHead } from '../../ground/exchange/exchange.ts'
import { redacted } from '../../ground/secrets/credential-names.ts'
import { HeaderList } from './header-list.ts'
import type { SimulatedHeader, SimulatedRequest } from './types.ts'
import type { Unknowns } from './unknowns.ts'

const targetPattern = /^[\x21-\x7e\x80-\xff]*$/
const authorityPattern = /^[\x21-\x2e\x30-\x7e]+$/
const tokenPattern = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/

const versions: Readonly<Record<string, string>> = {
  'HTTP/1.0': '1.0',
  'HTTP/2': '2',
  'HTTP/2.0': '2',
}

export class SimulatedHead implements RequestHead {
  readonly headers: HeaderList
  scheme: 'http' | 'https' = 'http'
  version = '1.1'
  readonly #unknowns: Unknowns
  #method = ''
  #authority = ''
  #path = '/'
  #query: string | undefined
  #isQueryHidden = false
  /** Why method, host and path may have been changed. */
  #doubt: string | undefined

  constructor(unknowns: Unknowns) {
    this.#unknowns = unknowns
    this.headers = new HeaderList(unknowns)
  }

  load(
    request: SimulatedRequest,
    findValue: (header: SimulatedHeader) => string | undefined,
  ): void {
    this.scheme = request.scheme
    this.version = versions[request.protocol ?? ''] ?? '1.1'
    this.#method = request.method
    this.#authority = request.host
    this.#path = request.path === '' ? '/' : request.path
    this.#query = request.query
    this.#isQueryHidden = request.query?.includes(redacted) === true
    this.#doubt = undefined
    this.headers.load(request.headers, findValue)
    if (request.headersProblem !== undefined) this.headers.doubtAll(request.headersProblem)
  }

  /** Marks the start line, which a step may have changed in an unknown way. */
  doubt(reason: string): void {
    this.#doubt = reason
  }

  /** Why the route cannot be found, if a step may have changed the start line. */
  get problem(): string | undefined {
    return this.#doubt
  }

  /** Whether the value of a query parameter is hidden, because it is a credential. */
  isHidden(parameter: string): boolean {
    if (!this.#isQueryHidden) return false
    const hidden = (this.#query ?? '').split('&').filter((part) => part.endsWith(`=${redacted}`))
    return hidden.some((part) => decoded(part.slice(0, part.indexOf('='))) === parameter)
  }

  #certain<Value>(value: Value): Value {
    if (this.#doubt !== undefined) this.#unknowns.read(this.#doubt)
    return value
  }

  get method(): string {
    return this.#certain(this.#method)
  }

  set method(method: string) {
    if (!tokenPattern.test(method) || method.toUpperCase() === 'CONNECT') {
      throw new GatewayError('filter_failed', 'the new method is not a token')
    }
    this.#method = method
  }

  get authority(): string {
    return this.#certain(this.#authority)
  }

  set authority(authority: string) {
    if (!authorityPattern.test(authority))
      throw new GatewayError('filter_failed', 'the new host is not valid')
    this.#authority = authority
  }

  get path(): string {
    return this.#certain(this.#path)
  }

  set path(path: string) {
    if (!targetPattern.test(path) || !path.startsWith('/') || /[?#]/.test(path)) {
      throw new GatewayError('filter_failed', 'the new path is not a valid path')
    }
    this.#path = path
  }

  get query(): string | undefined {
    if (this.#isQueryHidden) this.#unknowns.read('a credential in the query is not recorded')
    return this.#certain(this.#query)
  }

  set query(query: string | undefined) {
    if (query !== undefined && (!targetPattern.test(query) || query.includes('#'))) {
      throw new GatewayError('filter_failed', 'the new query is not valid')
    }
    this.#query = query
    this.#isQueryHidden = false
  }

  get upgrade(): undefined {
    return undefined
  }
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
