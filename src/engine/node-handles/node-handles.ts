import type { IoCore } from '../../core/index.ts'
import { HandleWrites } from './handle-writer.ts'
import { SharedReads } from './shared-reads.ts'

/**
 * What the engine does with the private handles of Node's sockets. docs/engine.md lists what it
 * relies on, and how that is tested against a new Node.
 */
export interface NodeHandles {
  readonly sharedReads: SharedReads
  /** Undefined if sockets are written to as streams. */
  readonly handleWrites: HandleWrites | undefined
}

/**
 * Finds what this Node offers. If `isAllowed` is false, or a handle is not as expected, sockets are
 * used by their documented streams.
 */
export function findNodeHandles(core: IoCore, isAllowed: boolean): NodeHandles {
  return {
    sharedReads: new SharedReads(core, isAllowed),
    handleWrites: isAllowed ? HandleWrites.find() : undefined,
  }
}
