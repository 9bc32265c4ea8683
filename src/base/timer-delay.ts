/** Delays of timers. A Duration, or the life of a token, may be longer than a timer of Node can wait. */

/** 596 hours; Node takes a longer delay for 1 ms. */
const longestMs = 2 ** 31 - 1

/** A delay that a timer can wait. What follows a shorter wait than asked for must do no harm. */
export const timerDelay = (ms: number): number => Math.min(ms, longestMs)
