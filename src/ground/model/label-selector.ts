/** A label selector of Kubernetes (metav1.LabelSelector). */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
}

/** Returns true if the selector matches. An empty one matches everything, an unknown operator nothing. */
export function matchesSelector(
  selector: LabelSelector | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  for (const [key, value] of Object.entries(selector?.matchLabels ?? {})) {
    if (labels[key] !== value) return false
  }
  return (selector?.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
    const label = labels[key]
    switch (operator) {
      case 'In':
        return label !== undefined && values.includes(label)
      case 'NotIn':
        return label === undefined || !values.includes(label)
      case 'Exists':
        return label !== undefined
      case 'DoesNotExist':
        return label === undefined
      default:
        return false
    }
  })
}
