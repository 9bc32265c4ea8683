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

/** A condition as a derivation decides it; its transition time is added later. */
export interface DecidedCondition extends Omit<Condition, 'lastTransitionTime'> {
  /**
   * The parts of the message that report mistakes in the object itself; if omitted, the whole message
   * does. References to missing objects, faults that another object reports, and the lack of a running
   * cluster are not such mistakes. Only `sluice validate` uses this; it is never part of a status.
   */
  readonly own?: readonly string[]
}
