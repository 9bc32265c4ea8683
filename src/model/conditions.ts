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
export type DecidedCondition = Omit<Condition, 'lastTransitionTime'>
