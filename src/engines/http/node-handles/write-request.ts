import { getSystemErrorName } from 'node:util'
import type { SocketWriter, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'

/** The request that Node passes to a handle with each write. */
export interface WriteRequest {
  /** Called at the end of a write that had to wait. */
  oncomplete: ((this: WriteRequest, status: number) => void) | null
  /** Negative unless the system still works on the request. */
  getAsyncId(): number
  writer?: SocketWriter | undefined
  size?: number
  /** Parts that the system still reads; the reference keeps them alive. */
  parts?: readonly WrittenPart[] | undefined
  /** A buffer that the system still reads; it is released when the write is over. */
  buffer?: WriteBuffer | undefined
}

/** The methods of a Node handle that write. They return 0 or a negated errno. */
export interface WritableHandle {
  writeLatin1String(request: WriteRequest, text: string): number
  writeBuffer(request: WriteRequest, bytes: Uint8Array): number
  writev(request: WriteRequest, chunks: readonly unknown[], areAllBuffers: boolean): number
}

/** Writes parts in order, in one system call if they fit. Returns the handle's result. */
export function startParts(
  handle: WritableHandle,
  request: WriteRequest,
  parts: readonly WrittenPart[],
): number {
  const [first] = parts
  if (parts.length === 1 && first !== undefined) {
    return typeof first === 'string'
      ? handle.writeLatin1String(request, first)
      : handle.writeBuffer(request, first)
  }
  const chunks: unknown[] = []
  for (const part of parts) chunks.push(part, 'latin1')
  return handle.writev(request, chunks, false)
}

/** Creates the error of a write. `status` is a negated errno. */
export function writeError(status: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(status)
  const error: NodeJS.ErrnoException = new Error(`write ${code}`)
  error.code = code
  error.errno = status
  error.syscall = 'write'
  return error
}
