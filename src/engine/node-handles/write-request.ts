import { getSystemErrorName } from 'node:util'
import type { SocketWriter, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'

/** What Node passes to a handle with each write; its callback ends a write that had to wait. */
export interface WriteRequest {
  oncomplete: ((this: WriteRequest, status: number) => void) | null
  /** Negative unless the system still works on the request. */
  getAsyncId(): number
  writer?: SocketWriter | undefined
  size?: number
  /** Keeps what the system still reads. */
  parts?: readonly WrittenPart[] | undefined
  /** The same; it is released when the write is over. */
  buffer?: WriteBuffer | undefined
}

/** The part of a handle of Node that writes go through. Results are 0 or a negated errno. */
export interface WritableHandle {
  writeLatin1String(request: WriteRequest, text: string): number
  writeBuffer(request: WriteRequest, bytes: Uint8Array): number
  writev(request: WriteRequest, chunks: readonly unknown[], areAllBuffers: boolean): number
}

/** `status`: a negated errno. */
export function writeError(status: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(status)
  const error: NodeJS.ErrnoException = new Error(`write ${code}`)
  error.code = code
  error.errno = status
  error.syscall = 'write'
  return error
}
