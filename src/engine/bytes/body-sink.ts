import type { WriteBuffer } from './write-buffers.ts'

/** Where the bytes of a body go: a connection of HTTP/1.1, or a stream of HTTP/2. */
export interface BodySink {
  /** Where small pieces are put side by side until they are flushed; only some sinks have it. */
  readonly writeBuffer?: WriteBuffer | undefined
  /** Bytes as Latin-1 text; kept until `flush`. */
  appendText(latin1: string): void
  /**
   * Bytes that the sink may look at until it has drained where there are more than `copyLimit` of
   * them, and copies where there are fewer.
   */
  appendBytes(bytes: Buffer, start: number, end: number): void
  /** The body is complete. `trailers`: field lines; only a sink that frames bodies sends them. */
  endBody(trailers: string): void
  /** Hands on what was appended; false when the peer is slow. */
  flush(): boolean
}

/** The connection that a body is read from. */
export interface BodySource {
  /** The body is wanted, or wanted again. */
  resumeBody(): void
}

/** Gets a copy of what is sent. */
export interface BodyTap {
  onSent(bytes: Buffer, start: number, end: number): void
  onSentEnd(): void
  /** The message will not be complete. */
  onAbandon(): void
}
