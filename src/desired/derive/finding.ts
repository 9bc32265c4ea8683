/** What is wrong with an object, and how bad it is for it. */

/** How bad a finding is for the object that has it. */
type Severity =
  /**
   * A protection is missing: what it covers is refused. A backend is not accepted then; a policy is
   * partially valid as long as another of its fields works.
   */
  | 'closed'
  /** The field has no effect. */
  | 'ineffective'
  /** Everything works; there is something to know. */
  | 'note'

export interface Finding {
  readonly severity: Severity
  readonly message: string
  /** As in `DecidedCondition`. */
  readonly own?: readonly string[]
}
