/** One example of a spec, valid or not; run offline and against a real API server. */
export interface SchemaCase {
  /** Completes "GatewayBackend …" or "GatewayPolicy …": what is written. */
  readonly written: string
  readonly kind: 'GatewayBackend' | 'GatewayPolicy' | 'GatewayParameters'
  readonly spec: unknown
  /** Where it is refused, as `spec.a.b[0]`; absent where it is accepted. */
  readonly refusedAt?: string
  /** The message, where both sides must say the same; only rules of ours have one. */
  readonly message?: string
}

/** A row of the coverage table, and the examples that show it. */
export interface CaseGroup {
  readonly id: string
  /** Further rows that the same examples show. */
  readonly shows?: readonly string[]
  readonly cases: readonly SchemaCase[]
}

/** Where a value of some type stands in an object. */
export interface Place {
  readonly kind: SchemaCase['kind']
  readonly path: string
  readonly spec: (value: unknown) => unknown
}

/**
 * The place that a path names, such as `spec.ai.groups[0].providers[0]`. What else must stand
 * beside the path is merged in at the prefix that names it.
 */
export function place(
  kind: SchemaCase['kind'],
  path: string,
  beside: Readonly<Record<string, object>> = {},
): Place {
  const steps = path.split('.').slice(1)
  const build = (value: unknown, depth: number, prefix: string): unknown => {
    const step = steps[depth]
    if (step === undefined) return value
    const [name, index] = step.split(/[[\]]/)
    const inner = build(value, depth + 1, `${prefix}.${step}`)
    const next = merge(inner, beside[`${prefix}.${step}`])
    return { [name ?? '']: index === undefined ? next : [next] }
  }
  return { kind, path, spec: (value) => merge(build(value, 0, 'spec'), beside.spec) }
}

function merge(value: unknown, more: object | undefined): unknown {
  return more === undefined ? value : { ...more, ...(value as object) }
}

const targets = { targetRefs: [{ group: '', kind: 'Service', name: 'a' }] }

/** A place in a GatewayPolicy, which must have a target. */
export function policyPlace(path: string, beside: Readonly<Record<string, object>> = {}): Place {
  return place('GatewayPolicy', path, { spec: targets, ...beside })
}

export function backendPlace(path: string, beside: Readonly<Record<string, object>> = {}): Place {
  return place('GatewayBackend', path, beside)
}

/** Rows for `it.each`, whose `%s` is the title in full. */
export function byTitle(cases: readonly SchemaCase[]): (readonly [string, SchemaCase])[] {
  return cases.map((example) => [example.written, example])
}
