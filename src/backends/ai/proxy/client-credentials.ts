/**
 * What a client of a model has sent as credentials. It is taken off the request once, before anything
 * is sent to a provider or a mirror, so that no vendor and no attempt sees what was not meant for it.
 */
import { credentialsOf } from '../../../auth/authorization-header.ts'
import { isKeyParameter, takeSubprotocolKey } from '../../../auth/vendor-keys.ts'
import { isCredentialName } from '../../../base/credential-names.ts'
import { changeQuery } from '../../../base/query-string.ts'
import type { ServerExchange } from '../../../engine/contracts/requests.ts'
import type { FieldPair } from '../../../exchange/exchange.ts'
import { FieldPairs } from '../../../exchange/memory-message.ts'
import type { Provider } from '../providers/provider.ts'

export class ClientCredentials {
  readonly #fields: FieldPairs
  readonly #parameters: readonly FieldPair[]
  readonly #subprotocolKey: string | undefined

  /** Takes them off the request. Credentials that policies and filters have set stay. */
  constructor(exchange: ServerExchange) {
    const { request } = exchange
    this.#fields = new FieldPairs(exchange.takeFields(isCredentialName))
    this.#subprotocolKey = takeSubprotocolKey(request.headers)
    this.#parameters = takeParameters(request)
  }

  /** Values of a header of that name. */
  getAll(name: string): string[] {
    return this.#fields.getAll(name)
  }

  /**
   * The header by which `passthrough` gives a vendor its own credential back, and no other's. A bearer
   * token may be anybody's: it goes to a vendor that takes keys elsewhere only if the backend has no
   * other vendor, or if it has the form of the vendor's keys. Undefined if there is none, or several.
   */
  ofVendor({ keyPlaces, isOwnKey }: Provider, isOnlyVendor: boolean): FieldPair | undefined {
    const { header, parameter, isSubprotocol } = keyPlaces
    const own = this.getAll(header)
    const [value] = own
    if (value !== undefined) return own.length === 1 ? [header, value] : undefined
    if (isSubprotocol && this.#subprotocolKey !== undefined) {
      return ['authorization', `Bearer ${this.#subprotocolKey}`]
    }
    const given = this.#parameters.filter(([name]) => name === parameter)
    if (given.length > 0) return given.length === 1 ? given[0] && [header, given[0][1]] : undefined
    const token = credentialsOf(this.#fields, 'bearer')
    if (typeof token !== 'string') return undefined
    return isOnlyVendor || isOwnKey?.(token) ? ['authorization', `Bearer ${token}`] : undefined
  }
}

function takeParameters(request: ServerExchange['request']): readonly FieldPair[] {
  const { query } = request
  if (query === undefined) return []
  const taken: FieldPair[] = []
  const kept = changeQuery(query, (parameter, name, value) => {
    if (!isKeyParameter(name) && !isCredentialName(name)) return parameter
    taken.push([name.toLowerCase(), value])
    return undefined
  })
  if (taken.length > 0) request.query = kept
  return taken
}
