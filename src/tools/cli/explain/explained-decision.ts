/** A recorded decision with the versions of the objects that decided it. */
import type { RecordedDecision, RecordedStep } from '../../../past/decisions/record.ts'
import type { Version } from './configuration-at.ts'

/** An object and, if the log has it, the version that was in force. */
export type ObjectVersion = Partial<Version> & { readonly object: string }

export interface ExplainedStep extends Partial<ObjectVersion> {
  readonly step: string
  readonly verdict: RecordedStep['verdict']
  /** What the step found. Not set if it found nothing. */
  readonly reason?: string
  /** All objects that the step comes from, if there are several; `object` decided, or is the most specific. */
  readonly from?: readonly ObjectVersion[]
}

export interface Explanation {
  readonly decision: RecordedDecision
  /** Why the versions of the steps are unknown; not set if they are known. */
  readonly problem: string | undefined
  readonly gateway: ObjectVersion | undefined
  readonly route: ObjectVersion | undefined
  readonly steps: readonly ExplainedStep[]
}
