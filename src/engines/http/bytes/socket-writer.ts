import type { WriteBuffer } from './write-buffers.ts'

/** A part of a write: text with one byte per character, or a view that the kernel may read later. */
export type WrittenPart = string | Uint8Array

/** Handles the results of writes. */
export interface WriterOwner {
  /** Called when everything that waited for the peer has been sent. */
  onWritten(): void
  /** Called when a write has failed; nothing written from now on reaches the peer. */
  onWriteError(error: Error): void
}

/** Writes into a socket. */
export interface SocketWriter {
  /** Number of bytes that were written and that the kernel has not accepted yet. */
  readonly backlog: number
  /** Whether bytes wait for the peer, so that `onWritten` will be called. */
  readonly needsDrain: boolean
  /** Whether written views may still be referenced. */
  readonly holdsViews: boolean
  /** Writes Latin-1 text. */
  writeText(text: string): void
  /** Whether `writeBuffer` can be called now. */
  readonly takesBuffer: boolean
  /** Writes the content of the buffer, and releases the buffer when the content has been sent. */
  writeBuffer(buffer: WriteBuffer): void
  /** Writes parts in order, in one system call if they fit. */
  writeParts(parts: readonly WrittenPart[]): void
  /** Ends the stream after everything that was written. */
  end(): void
}
