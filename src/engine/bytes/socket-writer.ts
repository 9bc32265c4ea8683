import type { WriteBuffer } from './write-buffers.ts'

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
  /** While a drain is awaited, written views are still referenced. */
  readonly holdsViews: boolean
  /** Latin-1 text. */
  writeText(text: string): void
  /** `writeBuffer` can be called now. */
  readonly takesBuffer: boolean
  /** Writes what was added, and releases the buffer when it has left. */
  writeBuffer(buffer: WriteBuffer): void
  /** Parts in order, in one system call if they fit. */
  writeParts(parts: readonly WrittenPart[]): void
  /** The end of the stream, behind all that was written. */
  end(): void
}
