/** From an address, or the addresses of a name, to a transport. */
import type { Socket } from 'node:net'
import type { ReadInto } from '../bytes/read-buffers.ts'
import { ConnectionRace, type RaceParts } from './connection-race.ts'
import { openSocket, whenReady } from './dial.ts'
import { type ByteMeter, Transport, type TransportOwner, type TransportParts } from './transport.ts'
import type { AddressRace, UpstreamAddress } from './upstream-address.ts'

/** Whose connection it is to be; `onClose` without `onReady` before says that there is none. */
export interface OpeningOwner extends TransportOwner {
  /** Another address of the name is connected to than the one that was asked for. */
  onAlternateAddress(address: UpstreamAddress): void
  /** Bytes of the application may be written. */
  onReady(): void
}

interface Opening {
  readonly address: UpstreamAddress
  readonly race: AddressRace | undefined
  /** Absent: bytes come as buffers of their own. */
  readonly into: ReadInto | undefined
  readonly owner: OpeningOwner
}

/** What making connections to upstreams takes from the engine. */
interface OpeningParts extends TransportParts, RaceParts {
  readonly upstreamMeter: ByteMeter
}

/** Begins to connect. Where the transport is destroyed before, whatever was begun is given up. */
export function openTransport(parts: OpeningParts, opening: Opening): Transport {
  const transport = opened(parts, opening)
  transport.readsAfterWriteError = true
  return transport
}

function opened(parts: OpeningParts, opening: Opening): Transport {
  const { address, race, into, owner } = opening
  const rivals = race?.rivalsOf(address)
  if (race === undefined || rivals === undefined || rivals.length === 0) {
    const socket = openSocket(address, into)
    whenReady(socket, address, () => owner.onReady())
    const transport = new Transport(parts, socket, owner, parts.upstreamMeter)
    if (into === undefined) transport.readEvents()
    return transport
  }
  return raced(parts, opening, race, [address, ...rivals])
}

function raced(
  parts: OpeningParts,
  { address: asked, into, owner }: Opening,
  race: AddressRace,
  addresses: readonly UpstreamAddress[],
): Transport {
  const transport = new Transport(parts, undefined, owner, parts.upstreamMeter)
  const won = (address: UpstreamAddress, socket: Socket): void => {
    transport.adopt(socket)
    if (into === undefined) transport.readEvents()
    if (address !== asked) owner.onAlternateAddress(address)
    if (transport.closed) return
    if (address.tls === undefined) owner.onReady()
    else whenReady(socket, address, () => owner.onReady())
  }
  const lost = (error: Error | undefined): void => {
    if (transport.closed) return
    transport.closed = true
    owner.onClose(error)
  }
  const runners = new ConnectionRace(parts, race, addresses, {
    open: (address) => openSocket(address, into),
    onWon: won,
    onLost: lost,
  })
  transport.giveUp = () => runners.cancel()
  return transport
}
