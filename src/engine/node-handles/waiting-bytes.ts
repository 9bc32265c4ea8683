import type { Socket } from 'node:net'

const nothing = Buffer.alloc(0)

/** What says of a stream that its end waits in it; unknown to the types. */
interface StreamState {
  readonly _readableState?: { readonly ended?: unknown }
}

/**
 * Takes what waits in a paused socket. Undefined, and untouched, where the end of what the client
 * sends may wait there too: another socket would not be notified of it.
 */
export function takeWaiting(socket: Socket): Buffer | undefined {
  const state = (socket as unknown as StreamState)._readableState
  if (state?.ended !== false || socket.destroyed || socket.writableLength > 0) return undefined
  if (socket.readableLength === 0) return nothing
  const chunks: Buffer[] = []
  for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(chunk)
  return Buffer.concat(chunks)
}
