/** Maximum delay of a timer: 596 hours. Node treats a longer delay as 1 ms. */
export const longestDelayMs = 2 ** 31 - 1

/** Limits a delay to the maximum of a timer. Use it only if firing early does no harm. */
export const timerDelay = (ms: number): number => Math.min(ms, longestDelayMs)
