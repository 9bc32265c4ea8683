/** The lengths of units of time, in milliseconds. */
export const limitPeriodMs = {
  Seconds: 1_000,
  Minutes: 60_000,
  Hours: 3_600_000,
  Days: 86_400_000,
  Months: 2_592_000_000,
} as const
