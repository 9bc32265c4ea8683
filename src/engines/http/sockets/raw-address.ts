/** Addresses for connections whose bytes are forwarded without being parsed. */
import type { AddressRace, UpstreamAddress } from './upstream-address.ts'

/**
 * Offers only configured ALPN protocols, because the content of a stream is unknown (RFC 7301 3.2). `isPlain`:
 * without TLS.
 */
export function forBytes(address: UpstreamAddress, isPlain = false): UpstreamAddress {
  const { tls, ...plain } = address
  if (tls === undefined) return address
  return isPlain ? plain : { ...address, tls: { ...tls, alpn: tls.statedAlpn } }
}

/** Returns the same race, between addresses as `forBytes` returns them. */
export function raceForBytes(race: AddressRace, isPlain = false): AddressRace {
  return {
    isPatient: race.isPatient,
    rivalsOf: (lead) => race.rivalsOf(lead).map((rival) => forBytes(rival, isPlain)),
    won: (winner, beaten) => race.won(winner, beaten),
  }
}
