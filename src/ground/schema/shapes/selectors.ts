import { choice, list, map, object, optional, required, text } from '../field.ts'

const labelKey = text({ min: 1, max: 317 })
const labelValue = text({ max: 63 })

export const labels = map(labelValue, { keys: labelKey, max: 64 })

const selectorRequirement = object('LabelSelectorRequirement', {
  key: required(labelKey, 'Label key.'),
  operator: required(
    choice('LabelSelectorOperator', {
      In: 'the value is one of values',
      NotIn: 'the value is not in values, or the label is missing',
      Exists: 'the label is present',
      DoesNotExist: 'the label is absent',
    }),
    'How the label is compared.',
  ),
  values: optional(list(labelValue, { max: 64 }), 'Values for In and NotIn.'),
})

/** Kubernetes metav1.LabelSelector. All conditions must hold; an empty selector matches everything. */
export const labelSelector = object('LabelSelector', {
  matchLabels: optional(labels, 'Labels that must be present with these values.'),
  matchExpressions: optional(list(selectorRequirement, { max: 64 }), 'Further conditions.'),
})
