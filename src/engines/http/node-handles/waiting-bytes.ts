import type { Socket } from 'node:net'

const nothing = Buffer.alloc(0)

/** The undocumented part of a stream that shows whether its end has arrived. */
interface StreamState {
  readonly _readableState?: { readonly ended?: unknown }
}

/**
 * Removes and returns the bytes that wait in a paused socket. Returns undefined, and removes nothing,
 * if the end of the stream may wait there too, because another socket would not be notified of it.
 */
export function takeWaiting(socket: Socket): Buffer | undefined {
  const state = (socket as unknown as StreamState)._readableState
  if (state?.ended !== false || socket.destroyed || socket.writableLength > 0) return undefined
  if (socket.readableLength === 0) return nothing
  const chunks: Buffer[] = []
  for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(chunk)
  return Buffer.concat(chunks)
}
