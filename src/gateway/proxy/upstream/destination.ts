import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import type { ConnectionSettings } from '../../../ground/exchange/connection.ts'
import type { Step } from '../../policies/define.ts'
import type { UpstreamEndpoint } from './endpoint.ts'
import type { NameRace } from './name-endpoints.ts'
import type { RequestCap } from './request-cap.ts'

/** The address of a backend for one attempt, and how to connect to it. */
export interface Destination {
  readonly address: UpstreamAddress
  /** Set if the address belongs to a host name. Its other addresses may be tried as well. */
  readonly race?: NameRace
  /** Value of Host for `hostRewrite: Auto`: the host, and the port unless it is the default port. */
  readonly authority: string
  /**
   * Whether the user wrote a host name, instead of a Service or an address. If so, `hostRewrite` is Auto by
   * default.
   */
  readonly isHostname: boolean
  readonly endpoint?: UpstreamEndpoint
  /** Connection settings of backend policies. */
  readonly settings: ConnectionSettings
  /** Steps of backend policies, which run for every attempt. */
  readonly steps: readonly Step[]
}

/**
 * Returns the destination for another address of the same host name. The endpoint of that address then
 * counts the request.
 */
export function movedTo(
  destination: Destination,
  address: UpstreamAddress,
  cap: RequestCap | undefined,
): Destination {
  const { endpoint, race } = destination
  const other = race?.endpointAt(address)
  // A model provider is one endpoint for all its addresses, so that the endpoint stays the same.
  const isPerAddress = race?.endpointAt(destination.address) === endpoint
  if (endpoint === undefined || other === undefined || other === endpoint || !isPerAddress) {
    return destination
  }
  if (cap !== undefined && other.load >= cap.most) return destination
  other.begin(cap)
  endpoint.end()
  return { ...destination, address, endpoint: other }
}
