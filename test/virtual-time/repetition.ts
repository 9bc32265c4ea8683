/** A run of a simulation. */
export interface Run {
  /** Why it failed; undefined if it passed. */
  readonly failure: string | undefined
  /** Identifies the whole schedule. */
  readonly digest: string
  readonly trace: readonly string[]
}

/** Returns the first run, as failed if a second run of its seed had another schedule. */
export function withRepetition<Outcome extends Run>(first: Outcome, second: Outcome): Outcome {
  if (first.digest === second.digest) return first
  const at = first.trace.findIndex((line, index) => line !== second.trace[index])
  const difference = `${first.trace[at]}\n  and ${second.trace[at]}`
  return { ...first, failure: `two runs differ, first at line ${at}:\n  ${difference}` }
}
