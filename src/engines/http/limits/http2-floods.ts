/**
 * Limits of frames that cost the gateway work and serve no request. Each kind of frame has a token
 * bucket that refills over time. A peer that empties a bucket gets ENHANCE_YOUR_CALM and is
 * disconnected (RFC 9113 10.5).
 */

/** The size of a bucket, and the rate at which it refills. */
interface Allowance {
  readonly burst: number
  readonly perSecond: number
}

export const floodKinds = {
  /**
   * Streams that the peer resets (CVE-2023-44487), or makes us reset by a violation (CVE-2025-8671).
   * Successful requests do not refill this bucket, so that they cannot make up for abandoned ones.
   */
  reset: { burst: 200, perSecond: 33 },
  settings: { burst: 32, perSecond: 4 },
  ping: { burst: 64, perSecond: 8 },
  priority: { burst: 512, perSecond: 64 },
  /** DATA frames without data, and trailers without END_STREAM (CVE-2019-9518). */
  empty: { burst: 128, perSecond: 16 },
  /** WINDOW_UPDATE frames with a tiny increment (CVE-2019-9511, CVE-2019-9517). */
  window: { burst: 1_024, perSecond: 128 },
  /** Frames of unknown types, or for streams that have ended. */
  stray: { burst: 512, perSecond: 64 },
  /**
   * Frames that are ignored: acknowledgements, and frames for streams that have ended. Each stream and
   * each DATA frame that we send refills the bucket a little.
   */
  late: { burst: 1_024, perSecond: 128 },
  /** Heads that are too large after decompression (HPACK bombs); one for each multiple of the limit. */
  oversized: { burst: 8, perSecond: 1 },
  /** Header blocks with too many CONTINUATION frames (CVE-2024-27316). */
  continuation: { burst: 0, perSecond: 0 },
  /** Replies to control frames that the peer does not read (CVE-2019-9512, CVE-2019-9515). */
  unread: { burst: 0, perSecond: 0 },
} as const satisfies Record<string, Allowance>

export type FloodKind = keyof typeof floodKinds

export const floodKindNames = Object.keys(floodKinds) as readonly FloodKind[]

/** Returns a counter at zero for each kind. */
export function startFloodCounters(): Record<FloodKind, number> {
  return Object.fromEntries(floodKindNames.map((kind) => [kind, 0])) as Record<FloodKind, number>
}
