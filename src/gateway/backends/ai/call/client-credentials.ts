/**
 * The credentials that the client of a model sent. They are removed from the request once, before
 * it goes to a provider or a mirror, so that no vendor gets credentials meant for another one.
 */
import { credentialsOf } from '../../../../engines/auth/authorization-header.ts'
import { isKeyParameter, takeSubprotocolKey } from '../../../../engines/auth/vendor-keys.ts'
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import { changeQuery } from '../../../../ground/base/query-string.ts'
import type { FieldPair } from '../../../../ground/exchange/exchange.ts'
import { isCredentialName } from '../../../../ground/secrets/credential-names.ts'
import type { Provider } from '../providers/provider.ts'

export class ClientCredentials {
  /** The fields, with names in lower case. */
  readonly #fields: readonly FieldPair[]
  readonly #parameters: readonly FieldPair[]
  readonly #subprotocolKey: string | undefined

  /** Removes the credentials from the request. Credentials set by policies and filters are kept. */
  constructor(exchange: ServerExchange) {
    const { request } = exchange
    this.#fields = exchange.takeFields(isCredentialName)
    this.#subprotocolKey = takeSubprotocolKey(request.headers)
    this.#parameters = takeParameters(request)
  }

  /** Returns the values of a header that was removed from the request. */
  getAll(name: string): string[] {
    const lower = name.toLowerCase()
    return this.#fields.filter(([key]) => key === lower).map(([, value]) => value)
  }

  /**
   * Returns the header in which `passthrough` sends a vendor its own credential; undefined if there is no
   * credential or more than one. A bearer token may belong to any vendor: a vendor whose keys have
   * another header gets it only if the backend has no other vendor, or if the token has the form of the
   * vendor's keys.
   */
  ofVendor(vendor: Provider, isOnlyVendor: boolean): FieldPair | undefined {
    const { header, parameter } = vendor.keyPlaces
    const own = onlyPair(this.#fields, header)
    if (own !== undefined) return own === several ? undefined : own
    if (vendor.takesSubprotocolKey && this.#subprotocolKey !== undefined) {
      return ['authorization', `Bearer ${this.#subprotocolKey}`]
    }
    const given = parameter === undefined ? undefined : onlyPair(this.#parameters, parameter)
    if (given !== undefined) return given === several ? undefined : [header, given[1]]
    const token = credentialsOf({ lines: (name) => linesOf(this.getAll(name)) }, 'bearer')
    if (typeof token !== 'string') return undefined
    return isOnlyVendor || vendor.isOwnKey?.(token)
      ? ['authorization', `Bearer ${token}`]
      : undefined
  }
}

const several = Symbol('several pairs')

function onlyPair(
  pairs: readonly FieldPair[],
  name: string,
): FieldPair | typeof several | undefined {
  let found: FieldPair | undefined
  for (const pair of pairs) {
    if (pair[0] !== name) continue
    if (found !== undefined) return several
    found = pair
  }
  return found
}

const linesOf = (values: readonly string[]): string | readonly string[] | undefined =>
  values.length < 2 ? values[0] : values

const noParameters: readonly FieldPair[] = []

function takeParameters(request: ServerExchange['request']): readonly FieldPair[] {
  const { query } = request
  if (query === undefined) return noParameters
  const taken: FieldPair[] = []
  const kept = changeQuery(query, (parameter, name, value) => {
    if (!isKeyParameter(name) && !isCredentialName(name)) return parameter
    taken.push([name.toLowerCase(), value])
    return undefined
  })
  if (taken.length > 0) request.query = kept
  return taken
}
