/**
 * What a peer may do that costs us work and leads nowhere. Each kind has a bucket that refills with
 * time; a peer that empties one is sent ENHANCE_YOUR_CALM and disconnected (RFC 9113 10.5).
 */

/** `burst`: so many at once; `perSecond`: so many in the long run. */
interface Allowance {
  readonly burst: number
  readonly perSecond: number
}

export const floodKinds = {
  /**
   * Streams that the peer resets (CVE-2023-44487), or makes us reset by a fault (CVE-2025-8671).
   * Nothing is ever granted for them: a request that succeeds would pay for one that is abandoned.
   */
  reset: { burst: 200, perSecond: 33 },
  settings: { burst: 32, perSecond: 4 },
  ping: { burst: 64, perSecond: 8 },
  priority: { burst: 512, perSecond: 64 },
  /** DATA without data, and heads of trailers without end (CVE-2019-9518). */
  empty: { burst: 128, perSecond: 16 },
  /** WINDOW_UPDATE that lets go of hardly anything (CVE-2019-9511, CVE-2019-9517). */
  window: { burst: 1_024, perSecond: 128 },
  /** Frames of unknown types, or for streams that are over. */
  stray: { burst: 512, perSecond: 64 },
  /**
   * Frames that are ignored: acknowledgements, and frames for streams that are over. Each stream
   * and each DATA frame that we send may be followed by some.
   */
  late: { burst: 1_024, perSecond: 128 },
  /** Header blocks that go on and on (CVE-2024-27316). */
  continuation: { burst: 0, perSecond: 0 },
  /** Answers to control frames that the peer does not read (CVE-2019-9512, CVE-2019-9515). */
  unread: { burst: 0, perSecond: 0 },
} as const satisfies Record<string, Allowance>

export type FloodKind = keyof typeof floodKinds

export const floodKindNames = Object.keys(floodKinds) as readonly FloodKind[]

/** A counter for each kind. */
export function startFloodCounters(): Record<FloodKind, number> {
  return {
    reset: 0,
    settings: 0,
    ping: 0,
    priority: 0,
    empty: 0,
    window: 0,
    stray: 0,
    late: 0,
    continuation: 0,
    unread: 0,
  }
}
