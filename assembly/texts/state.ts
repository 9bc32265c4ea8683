// The record of a rewriter, and the rewriter at work.
import { guardCount } from './chain'
import { Bytes } from './bytes'
import { Masked } from './masked'

@unmanaged
export class Rewriter {
  /** TEXTS_COMPLETIONS ... and TEXTS_REQUEST ... */
  format: i32
  kind: i32
  guards: usize
  /** Bytes of a document or of an event, at most. */
  limit: i32
  /** Bytes of text that is held back, at most. */
  heldLimit: i32
  /** The code of the first failure; after it nothing is rewritten. */
  code: i32
  isOver: bool
  /** Index of the guard that rejects, or -1. */
  rejected: i32
  /** TEXTS_* bits of the record. */
  flags: i32
  inputTokens: f64
  outputTokens: f64
  cachedTokens: f64
  textBytes: f64
  /** Bytes of streamed text since the last report of usage. */
  uncounted: f64
  /** Matches of each guard (matches.ts), and its stream for whole texts: addresses, 0 until they are needed. */
  counts: usize
  streams: usize
  model: Bytes
  /** What has arrived and is not processed; what the host takes next. */
  window: Bytes
  out: Bytes
  /** Texts of edits; edits as they are found; and in the order of the document. */
  side: Bytes
  found: Bytes
  edits: Bytes
  /** Texts of a group: indexes of nodes. */
  group: Bytes
  masked: Masked
  /** Joined parts of a text. */
  joined: Bytes
  /** State of a stream, or 0. */
  stream: usize
  sse: usize
  /** The sequence number behind the last event that was written. */
  nextNumber: i64
}

/** The rewriter at work. */
export let rw: Rewriter = changetype<Rewriter>(0)

export function select(rewriter: Rewriter): void {
  rw = rewriter
}

export function isGuarded(): bool {
  return guardCount(rw.guards) > 0
}
