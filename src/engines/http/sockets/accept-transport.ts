import type { Socket } from 'node:net'
import { socketHighWaterMark } from '../bytes/write-limits.ts'
import { takeWaiting } from '../node-handles/waiting-bytes.ts'
import { inheritSource } from './connection-ends.ts'
import { isInner } from './inner-socket.ts'
import { type ByteMeter, Transport, type TransportOwner, type TransportParts } from './transport.ts'

/** The socket of a client connection. */
export interface AcceptedSocket {
  readonly socket: Socket
  /** The TCP socket under `socket` if that is TLS. */
  readonly raw?: Socket | undefined
  /** Whether bytes were read from the socket, such as a PROXY header, so that more may wait in it. */
  readonly wasRead?: boolean | undefined
}

const nothing = Buffer.alloc(0)

/**
 * Creates a transport for the socket of a client. It reads into shared memory if this Node supports
 * that, otherwise by the events of the socket. The owner receives bytes that wait in the socket first,
 * in this tick but after this function has returned.
 */
export function acceptTransport(
  parts: TransportParts,
  { socket, raw, wasRead = false }: AcceptedSocket,
  owner: TransportOwner,
  meter: ByteMeter,
): Transport {
  const waiting = wasRead ? takeWaiting(socket) : nothing
  const onRead = (length: number): boolean => transport.receivedShared(length)
  const isSystemSocket = !isInner(raw ?? socket)
  const taken =
    isSystemSocket && waiting && parts.sharedReads.takeOver(socket, socketHighWaterMark, onRead)
  const transport = new Transport(parts, taken || socket, owner, meter, raw)
  transport.writesStream = !isSystemSocket
  if (!taken) transport.readEvents()
  else if (wasRead) inheritSource(taken, socket)
  if (waiting !== undefined && waiting.length > 0) {
    process.nextTick(() => transport.received(waiting, 0, waiting.length))
  }
  return transport
}
