import { performance } from 'node:perf_hooks'

/**
 * Tells turns of the event loop apart. What was there when a turn began has happened before anything
 * that is written in it: a peer whose end is read in the turn in which a request was written to it
 * had closed before it could see that request. (A turn in which more than a thousand sockets are
 * ready looks at the kernel again; so close a case is not told apart.)
 */
export class Turns {
  /** The number of this turn: libuv counts them anyway, and an immediate of our own costs ten times as much. */
  get current(): number {
    return performance.nodeTiming.uvMetricsInfo.loopCount
  }
}
