/** Connects to an address, or to one of the addresses of a name. */
import type { Socket } from 'node:net'
import type { ConnectionEnds } from '../../../ground/exchange/peer.ts'
import { type ReadBuffer, type ReadInto, readBufferSize } from '../bytes/read-buffers.ts'
import { announceEnds } from './connection-ends.ts'
import { ConnectionRace, type RaceParts } from './connection-race.ts'
import { openSocket, whenReady } from './dial.ts'
import { innerConnection } from './inner-socket.ts'
import { openThroughProxy } from './through-proxy.ts'
import { type ByteMeter, Transport, type TransportOwner, type TransportParts } from './transport.ts'
import type { AddressRace, UpstreamAddress, UpstreamProxy } from './upstream-address.ts'

/** The owner of the connection. If `onClose` is called before `onReady`, no connection was made. */
export interface OpeningOwner extends TransportOwner {
  /** Called when the connection was made to another address of the name than the requested one. */
  onAlternateAddress(address: UpstreamAddress): void
  /** Called when bytes of the application may be written. */
  onReady(): void
}

interface Opening {
  readonly address: UpstreamAddress
  readonly race: AddressRace | undefined
  /** Where bytes are read: a buffer of this connection, shared memory, or a new buffer for each read. */
  readonly reads: ReadBuffer | 'shared' | 'events'
  readonly owner: OpeningOwner
}

/** The parts of the engine that are needed to connect. */
interface OpeningParts extends TransportParts, RaceParts {
  readonly upstreamMeter: ByteMeter
  acceptInner(port: number, socket: Socket): Error | undefined
}

/** Begins to connect. Destroying the transport before it is connected cancels the attempts. */
export function openTransport(parts: OpeningParts, opening: Opening): Transport {
  const { address: asked, race, owner } = opening
  const rivals = race?.rivalsOf(asked) ?? []
  const transport = new Transport(parts, undefined, owner, parts.upstreamMeter)
  transport.readsAfterWriteError = true
  if (asked.inner !== undefined) {
    connectInside(parts, asked.port, asked.inner, transport, owner)
    return transport
  }
  if (asked.via !== undefined) {
    connectThroughProxy(asked.via, opening, transport)
    return transport
  }
  const into = readInto(parts, opening, transport)
  const adopt = (socket: Socket): void => {
    transport.adopt(socket)
    if (into === undefined) transport.readEvents()
  }
  if (race === undefined || rivals.length === 0) {
    const socket = openSocket(asked, into)
    whenReady(socket, asked, () => owner.onReady())
    adopt(socket)
    return transport
  }
  const runners = new ConnectionRace(parts, race, [asked, ...rivals], {
    open: (address) => openSocket(address, into),
    onWon: (address, socket) => {
      adopt(socket)
      if (address !== asked) owner.onAlternateAddress(address)
      if (transport.closed) return
      if (address.tls === undefined) owner.onReady()
      else whenReady(socket, address, () => owner.onReady())
    },
    onLost: (error) => {
      if (transport.closed) return
      transport.closed = true
      owner.onClose(error)
    },
  })
  transport.cancelOpening = () => runners.cancel()
  return transport
}

/** The socket is read and written as a stream, because TLS may run over TLS, which has no handle. */
function connectThroughProxy(
  proxy: UpstreamProxy,
  { address, owner }: Opening,
  transport: Transport,
): void {
  transport.writesStream = true
  transport.cancelOpening = openThroughProxy(proxy, address, {
    onSocket(socket) {
      transport.adopt(socket)
      transport.readEvents()
      socket.resume()
      if (address.tls === undefined) owner.onReady()
      else whenReady(socket, address, () => owner.onReady())
    },
    onFailed(error) {
      transport.closed = true
      owner.onClose(error)
    },
  })
}

/** Connects to a listener of this process, which gets the connection as if its client had connected to the port. */
function connectInside(
  parts: OpeningParts,
  port: number,
  ends: ConnectionEnds,
  transport: Transport,
  owner: OpeningOwner,
): void {
  const [near, far] = innerConnection()
  announceEnds(far, ends)
  transport.writesStream = true
  transport.adopt(near)
  transport.readEvents()
  // Later, because the owner does not have its transport yet.
  process.nextTick(() => {
    if (transport.closed) return
    const refusal = parts.acceptInner(port, far)
    if (refusal === undefined) owner.onReady()
    else near.destroy(refusal)
  })
}

/** Returns undefined if the socket is read by its events. */
function readInto(
  { sharedReads }: OpeningParts,
  { reads }: Opening,
  transport: Transport,
): ReadInto | undefined {
  if (reads === 'events') return undefined
  if (reads === 'shared') return sharedReads.readsOf((length) => transport.receivedShared(length))
  const { memory, start } = reads
  return {
    buffer: memory.subarray(start, start + readBufferSize),
    callback: (length) => {
      transport.received(memory, start, start + length)
      return !transport.paused
    },
  }
}
