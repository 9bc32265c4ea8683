/** What is wrong with an object, and how bad it is for it. */

/** How bad a finding is for the object that has it. */
export type Severity =
  /** A protection is missing: the object is not accepted and what it covers answers 500. */
  | 'closed'
  /** The field has no effect. */
  | 'ineffective'
  /** Everything works; there is something to know. */
  | 'note'

export interface Finding {
  readonly severity: Severity
  readonly message: string
}
