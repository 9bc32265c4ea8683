/** A problem of an object, and how severe it is. */

/** How severe a finding is for the object that has it. */
type FindingSeverity =
  /**
   * A security field cannot be enforced, so requests that it applies to are rejected. A backend is then
   * not accepted; a policy is partially valid if another of its fields works.
   */
  | 'closed'
  /** The field has no effect. */
  | 'ineffective'
  /** Everything works; this is only a hint for the user. */
  | 'note'

export interface Finding {
  readonly severity: FindingSeverity
  readonly message: string
  /** See `DecidedCondition.own`. */
  readonly own?: readonly string[]
}
