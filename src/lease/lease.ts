/** What all leases have in common, wherever they are stored. */
interface LeaseEvents {
  /** This replica holds the lease now, under an epoch higher than any before. */
  onAcquired(epoch: number): void
  /** It does not hold it any more; what it began to write must not be continued. */
  onLost(reason: string): void
  onProblem(message: string): void
}

export interface LeaseOptions extends LeaseEvents {
  /** Names this run of this replica; never used twice. */
  readonly identity: string
  /** How long a holder counts as alive without a sign of life, in milliseconds. */
  readonly durationMs: number
  /** The highest epoch that the log knows; the next one is above it. */
  readonly highestEpoch: () => number
  /** Could this replica do the work of a holder now? Otherwise it leaves the lease to others. */
  readonly isFit: () => boolean
  /**
   * Can this replica serve no proxy until it holds the lease, although the holder is alive? It then
   * asks for it: a log that was moved elsewhere is empty until its own replicas write it.
   */
  readonly needsIt?: () => boolean
  /** Could this replica serve on without the lease, so that it may give it to one that asks? */
  readonly mayYield?: () => boolean
}

export interface Lease {
  start(): void
  /** The epoch while the lease is surely held, by this machine's own clocks. */
  epoch(): number | undefined
  /** Gives the lease up, if it is held, and lets others go first. */
  resign(reason: string): Promise<void>
  /** Gives the lease up and stops. */
  close(): Promise<void>
}
