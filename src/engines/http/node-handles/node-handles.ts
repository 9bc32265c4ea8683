import type { IoCore } from '../../core/index.ts'
import { HandleWrites } from './handle-writer.ts'
import { SharedReads } from './shared-reads.ts'

/**
 * Users of the private handles of Node's sockets. docs/engine.md lists the members that they rely on,
 * and how to test a new version of Node.
 */
export interface NodeHandles {
  readonly sharedReads: SharedReads
  /** Undefined if sockets are written to as streams. */
  readonly handleWrites: HandleWrites | undefined
}

/**
 * Checks what this Node supports. If `isAllowed` is false, or a handle does not work as expected,
 * sockets are used through their documented streams.
 */
export function findNodeHandles(core: IoCore, isAllowed: boolean): NodeHandles {
  return {
    sharedReads: new SharedReads(core, isAllowed),
    handleWrites: isAllowed ? HandleWrites.find() : undefined,
  }
}
