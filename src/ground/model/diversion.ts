import type { DesiredDelta } from './resources.ts'

/** What some proxies get instead of the published state, while a change is delivered in steps. */
export interface Diversion {
  /** Names of proxies, or of workers, such as `local/0`. */
  readonly proxies: ReadonlySet<string>
  /** The change of their state; all of it if `isNew`. */
  readonly delta: DesiredDelta
  /** Whether `delta` begins another state than that of the last diversion. */
  readonly isNew: boolean
}
