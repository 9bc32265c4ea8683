import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import type { ConnectionSettings } from '../../exchange/connection.ts'
import type { Step } from '../../policies/define.ts'
import type { UpstreamEndpoint } from './endpoint.ts'
import type { NameRace } from './name-endpoints.ts'
import type { RequestCap } from './request-cap.ts'

/** The place where a backend's requests go. */
export interface Destination {
  readonly address: UpstreamAddress
  /** Set where the address is one of a name: connections may be made to the others of that. */
  readonly race?: NameRace
  /** What `hostRewrite: Auto` sends: the host, and the port unless it is the scheme's default. */
  readonly authority: string
  /** A host name that the user wrote, rather than a Service or an address: Auto by default. */
  readonly isHostname: boolean
  readonly endpoint?: UpstreamEndpoint
  /** What backend policies settle. */
  readonly settings: ConnectionSettings
  /** Backend policies that look at requests; run for every attempt. */
  readonly steps: readonly Step[]
}

/**
 * The same destination at another address of its name, which is connected to: what was begun at one
 * endpoint goes on at the other. An endpoint that has enough to do gets no more: what is under way
 * stays counted where it was.
 */
export function movedTo(
  destination: Destination,
  address: UpstreamAddress,
  cap: RequestCap | undefined,
): Destination {
  const { endpoint, race } = destination
  const other = race?.endpointAt(address)
  // Providers of models are endpoints themselves, whatever their addresses.
  const isOurs = race?.endpointAt(destination.address) === endpoint
  if (endpoint === undefined || other === undefined || other === endpoint || !isOurs) {
    return destination
  }
  if (cap !== undefined && other.load >= cap.most) return destination
  other.begin(cap)
  endpoint.end()
  return { ...destination, address, endpoint: other }
}
