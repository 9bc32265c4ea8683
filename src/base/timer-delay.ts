/** Delays of timers. A Duration, or the lifetime of a token, may exceed what a timer of Node can wait. */

/** 596 hours. Node treats a longer delay as 1 ms. */
export const longestDelayMs = 2 ** 31 - 1

/** Limits a delay to what a timer can wait. Use it only if firing early does no harm. */
export const timerDelay = (ms: number): number => Math.min(ms, longestDelayMs)
