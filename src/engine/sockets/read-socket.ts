/**
 * Sockets from which something was read before they got their owner: a PROXY header, the hello of
 * TLS. What waits in such a socket is taken out first; then it is read into shared memory as others
 * are, and by its events only where that cannot be.
 */
import type { Socket } from 'node:net'
import { takeWaiting } from '../node-handles/waiting-bytes.ts'
import { inheritSource } from './connection-ends.ts'
import { type ByteMeter, Transport, type TransportOwner, type TransportParts } from './transport.ts'

/** A transport over a socket that was read from; its owner gets the bytes that waited first. */
export function overReadSocket(
  parts: TransportParts,
  socket: Socket,
  owner: TransportOwner,
  meter: ByteMeter,
): Transport {
  const waiting = takeWaiting(socket)
  if (waiting === undefined) return Transport.overEvents(parts, socket, owner, meter)
  const transport = Transport.overShared(parts, socket, owner, meter)
  inheritSource(transport.socket, socket)
  // The owner is not ready yet; before the next read of the kernel it is.
  if (waiting.length > 0) process.nextTick(() => transport.received(waiting, 0, waiting.length))
  return transport
}
