import { performance } from 'node:perf_hooks'

/**
 * Numbers the ticks of the event loop. What was there when a tick began has happened before anything
 * that is written in it: a peer whose end is read in the tick in which a request was written to it
 * had closed before it could see that request. (If more than a thousand sockets are ready, libuv
 * polls the kernel again within the tick; such a case is not detected.)
 */
export class LoopTicks {
  /** The number of this tick. libuv counts ticks anyway; an immediate of our own costs ten times as much. */
  get current(): number {
    return performance.nodeTiming.uvMetricsInfo.loopCount
  }
}
