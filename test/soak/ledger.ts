/** Counts exchanges, and decides which failures are violations and which a fault explains. */

export type Invariant =
  | 'isolation'
  | 'protection'
  | 'framing'
  | 'progress'
  | 'accounts'
  | 'memory'
  | 'quiet'

/** Something that must never happen. */
export interface Violation {
  readonly invariant: Invariant
  /** The tag of the exchange, or what it concerns. */
  readonly exchange: string
  readonly text: string
  /** What was received. */
  readonly bytes: string
}

/** An exchange failed, which a fault may explain, or it is wrong, which nothing does. */
export interface Outcome {
  readonly kind: 'failed' | 'wrong'
  readonly invariant?: Invariant
  readonly text: string
  readonly received: string
}

/** A time in which requests of some kinds of traffic may fail, because a fault was caused. */
export interface Disturbance {
  readonly name: string
  readonly from: number
  /** Undefined while it lasts. */
  to: number | undefined
  /** Whether requests on this way may fail: the name of an upstream, a front or `gateway`. */
  readonly affects: (way: string) => boolean
}

/** How long after a fault its effects may be seen: connections that were broken, providers that are ejected. */
const graceMs = 4_000
/** An exchange that takes longer is a violation, whatever happens meanwhile. */
export const patienceMs = 30_000

export interface Count {
  done: number
  /** Failures that a fault explains. */
  excused: number
  longestMs: number
}

export class Ledger {
  readonly counts = new Map<string, Count>()
  readonly disturbances: Disturbance[] = []
  violation: Violation | undefined
  /** Once the run ends early, what breaks off is no violation. */
  isClosed = false
  #tags = 0
  #onViolation: () => void = () => {}

  /** Resolves when something happened that must never happen. */
  readonly violated = new Promise<void>((resolve) => {
    this.#onViolation = resolve
  })

  nextTag(): string {
    return `tag-${++this.#tags}-`
  }

  /** Keeps the first violation. */
  report(violation: Violation): void {
    if (this.isClosed) return
    this.violation ??= violation
    this.#onViolation()
  }

  begin(name: string, affects: (way: string) => boolean): Disturbance {
    const disturbance = { name, from: performance.now(), to: undefined, affects }
    this.disturbances.push(disturbance)
    return disturbance
  }

  end(disturbance: Disturbance): void {
    disturbance.to = performance.now()
  }

  /** Whether a fault explains a failure between the two times on one of the ways. */
  isExcused(ways: readonly string[], from: number, to: number): boolean {
    return this.disturbances.some(
      (one) =>
        one.from <= to && (one.to ?? to) + graceMs >= from && ways.some((way) => one.affects(way)),
    )
  }

  /**
   * Counts one exchange and judges it. `run` resolves to undefined if everything is as it must be. `what` says
   * what was sent.
   */
  async exchange(
    kind: string,
    ways: readonly string[],
    tag: string,
    run: () => Promise<Outcome | undefined>,
    what = '',
  ): Promise<void> {
    const from = performance.now()
    const outcome = await withLimit(run)
    const to = performance.now()
    const count = this.#countOf(kind)
    count.done++
    count.longestMs = Math.max(count.longestMs, to - from)
    if (outcome === undefined) return
    const { invariant, text, received } = outcome
    if (outcome.kind === 'failed' && invariant !== 'progress' && this.isExcused(ways, from, to)) {
      count.excused++
      return
    }
    this.report({
      invariant: invariant ?? 'progress',
      exchange: `${tag} (${kind} by way of ${ways.join(', ')})`,
      text: what === '' ? text : `${what}: ${text}`,
      bytes: received,
    })
  }

  #countOf(kind: string): Count {
    const count = this.counts.get(kind) ?? { done: 0, excused: 0, longestMs: 0 }
    this.counts.set(kind, count)
    return count
  }
}

function withLimit(run: () => Promise<Outcome | undefined>): Promise<Outcome | undefined> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      const text = `does not end within ${patienceMs / 1_000} s`
      resolve({ kind: 'failed', invariant: 'progress', text, received: '' })
    }, patienceMs)
    run()
      .then(resolve, (error: unknown) =>
        resolve({ kind: 'failed', text: textOf(error), received: '' }),
      )
      .finally(() => clearTimeout(timer))
  })
}

/** An error with the error that caused it, which `fetch` and the SDKs hide. */
export function textOf(error: unknown): string {
  const { cause } = error as { cause?: unknown }
  return cause === undefined ? String(error) : `${String(error)}: ${textOf(cause)}`
}
