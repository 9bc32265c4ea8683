/** metav1.Condition: what users and other controllers read about an object. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration: number
  /** RFC 3339; the time of the event that changed `status`. */
  readonly lastTransitionTime: string
}

/** A condition before its transition time is known: what a derivation decides. */
export interface DecidedCondition extends Omit<Condition, 'lastTransitionTime'> {
  /**
   * Parts of the message that are mistakes in the object; all of it if omitted. An object that does
   * not exist, a fault that another object reports and a cluster that does not run are none. This is
   * for `sluice validate` and never part of a status.
   */
  readonly own?: readonly string[]
}
