import type { WriteBuffer } from './write-buffers.ts'

/** Receives the bytes of a body: an HTTP/1.1 connection, or an HTTP/2 stream. */
export interface BodySink {
  /** Buffer that collects small pieces until they are flushed; not every sink has one. */
  readonly writeBuffer?: WriteBuffer | undefined
  /** Called before small pieces are appended, which are collected in a buffer if one can be had. */
  startWriteBuffer?(): void
  /** Appends Latin-1 text, which waits until `flush`. */
  appendText(latin1: string): void
  /**
   * Appends bytes [start, end). Up to `copyLimit` bytes are copied; more are referenced until the sink
   * has drained.
   */
  appendBytes(bytes: Buffer, start: number, end: number): void
  /** Ends the body. `trailers` are field lines, which only a sink that frames bodies itself sends. */
  endBody(trailers: string): void
  /** Sends what was appended. Returns false if the peer is slow. */
  flush(): boolean
}

/** The connection or stream that a body is read from. */
export interface BodySource {
  /** Called when the body is wanted, or wanted again. */
  resumeBody(): void
}

/** Receives a copy of a body that is sent. */
export interface BodyTap {
  onSent(bytes: Buffer, start: number, end: number): void
  onSentEnd(): void
  /** Called when the message will not be completed. */
  onAbandon(): void
}
