import { choice, integer, list, object, optional, required, text } from '../field.ts'

/** Kubernetes metav1.Condition. */
const condition = object('Condition', {
  type: required(text({ min: 1, max: 316 }), 'Type of the condition, such as Accepted.'),
  status: required(
    choice('ConditionStatus', { True: 'it holds', False: 'it does not', Unknown: 'not known' }),
    'Whether the condition is true.',
  ),
  reason: required(text({ min: 1, max: 1024 }), 'Reason, one word for programs.'),
  message: required(text({ max: 32_768 }), 'A message for people.'),
  observedGeneration: optional(
    integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    'Generation of the spec to which the condition applies.',
  ),
  lastTransitionTime: required(text({ max: 64 }), 'When status last changed (RFC 3339).'),
})

/** A list of conditions, at most one of each type. */
export const conditions = (max: number) => list(condition, { max, unique: { by: ['type'] } })
