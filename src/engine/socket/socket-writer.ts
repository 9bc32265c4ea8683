import type { Socket } from 'node:net'
import type { GatherBuffer } from '../bytes/gather-buffers.ts'

/** What is written at once: text of one byte a character, and views that the kernel may read later. */
export type WrittenPart = string | Uint8Array

/** Learns what becomes of writes. */
export interface WriterOwner {
  /** What waited for the peer has left. */
  onWritten(): void
  /** A write has failed: nothing written from now on reaches the peer. */
  onWriteError(error: Error): void
}

/** The way of bytes into a socket. */
export interface SocketWriter {
  /** Bytes that were handed over and that the kernel has not taken. */
  readonly backlog: number
  /** So much waits for the peer that a drain will be told. */
  readonly needsDrain: boolean
  /** While a drain is awaited: somebody still looks at the bytes of views that were written. */
  readonly holdsViews: boolean
  /** Latin-1 text. */
  writeText(text: string): void
  /** Bytes can be gathered for `writeGathered` now. */
  readonly takesGathered: boolean
  /** Writes what was gathered, and releases the buffer when it has left. */
  writeGathered(buffer: GatherBuffer): void
  /** Parts in order, in one system call where they fit. */
  writeParts(parts: readonly WrittenPart[]): void
  /** The end of the stream, behind all that was written. */
  end(): void
}

/** The documented way, through the socket's stream. */
export class StreamWriter implements SocketWriter {
  readonly holdsViews = true
  readonly #socket: Socket
  /** More was written than fits since the last drain: only then the socket has to be asked. */
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

  get needsDrain(): boolean {
    return this.#isFull && this.#socket.writableNeedDrain
  }

  readonly takesGathered = false

  writeGathered(buffer: GatherBuffer): void {
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

/** The writer of a socket whose peer takes nothing more: drops what it is given. */
export const deadWriter: SocketWriter = {
  backlog: 0,
  needsDrain: false,
  holdsViews: false,
  takesGathered: false,
  writeText: () => {},
  writeGathered: (buffer) => buffer.release(),
  writeParts: () => {},
  end: () => {},
}
