/** Reads the canary annotations. */
import type { Fields } from '../conversion.ts'
import type { SourceField } from '../field.ts'
import { escapePattern } from '../plan.ts'

interface Canary {
  readonly weight: number
  readonly total: number
  /** Requests that always go to the canary, and those that never do. */
  readonly matches: readonly Fields[]
  readonly exclusions: readonly Fields[]
}

/** The canary of each path. */
export type Canaries = Map<string, Canary & { readonly ref: Fields }>

const annotation = (annotations: SourceField, name: string) =>
  annotations.get(`nginx.ingress.kubernetes.io/${name}`)

/** Undefined for an Ingress that is not a canary. */
export function canaryOf(annotations: SourceField): Canary | undefined {
  if (annotation(annotations, 'canary').flag() !== true) return undefined
  const header = annotation(annotations, 'canary-by-header').text()
  const value = annotation(annotations, 'canary-by-header-value').text()
  const pattern = annotation(annotations, 'canary-by-header-pattern').text()
  const cookie = annotation(annotations, 'canary-by-cookie').text()
  const matches: Fields[] = []
  const exclusions: Fields[] = []
  if (header !== undefined && pattern !== undefined) {
    matches.push({ headers: [{ type: 'RegularExpression', name: header, value: pattern }] })
  } else if (header !== undefined) {
    matches.push({ headers: [{ name: header, value: value ?? 'always' }] })
    if (value === undefined) exclusions.push({ headers: [{ name: header, value: 'never' }] })
  }
  if (cookie !== undefined) {
    const cookieMatch = (text: string) => ({
      headers: [
        {
          type: 'RegularExpression',
          name: 'cookie',
          value: `(.*;\\s*)?${escapePattern(cookie)}=${text}(;.*)?`,
        },
      ],
    })
    matches.push(cookieMatch('always'))
    exclusions.push(cookieMatch('never'))
  }
  for (const [name, field] of annotations.entries()) {
    if (name.includes('/canary')) continue
    // A canary inherits the other settings of the Ingress that it belongs to.
    if (name.startsWith('nginx.ingress.kubernetes.io/')) {
      field.refuse('changed', 'a canary has the settings of its main Ingress')
    }
  }
  const weight = annotation(annotations, 'canary-weight').number() ?? 0
  const total = annotation(annotations, 'canary-weight-total').number() ?? 100
  return { weight: Math.min(weight, total), total, matches, exclusions }
}
