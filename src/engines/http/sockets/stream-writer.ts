import type { Socket } from 'node:net'
import type { SocketWriter, WriterOwner, WrittenPart } from '../bytes/socket-writer.ts'
import type { WriteBuffer } from '../bytes/write-buffers.ts'

/** Writes through the stream of the socket, with documented methods only. */
export class StreamWriter implements SocketWriter {
  readonly #socket: Socket
  /** True from a write that filled the stream until the stream drains. */
  #isFull = false

  constructor(socket: Socket, owner: WriterOwner) {
    this.#socket = socket
    socket.on('drain', () => {
      this.#isFull = false
      owner.onWritten()
    })
  }

  get backlog(): number {
    return this.#socket.writableLength
  }

  get holdsViews(): boolean {
    return this.backlog > 0
  }

  get needsDrain(): boolean {
    return this.#isFull && this.#socket.writableNeedDrain
  }

  readonly takesBuffer = false

  writeBuffer(buffer: WriteBuffer): void {
    const text = buffer.text()
    buffer.release()
    this.writeText(text)
  }

  writeText(text: string): void {
    if (this.#socket.writable && !this.#socket.write(text, 'latin1')) this.#isFull = true
  }

  writeParts(parts: readonly WrittenPart[]): void {
    if (!this.#socket.writable) return
    this.#socket.cork()
    for (const part of parts) {
      const isTaken =
        typeof part === 'string' ? this.#socket.write(part, 'latin1') : this.#socket.write(part)
      if (!isTaken) this.#isFull = true
    }
    this.#socket.uncork()
  }

  end(): void {
    this.#socket.end()
  }
}

/** The writer of a socket after a failed write, which drops everything. */
export const deadWriter: SocketWriter = {
  backlog: 0,
  needsDrain: false,
  holdsViews: false,
  takesBuffer: false,
  writeText: () => {},
  writeBuffer: (buffer) => buffer.release(),
  writeParts: () => {},
  end: () => {},
}
