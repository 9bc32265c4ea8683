/** One example of a spec, valid or not; run offline and against a real API server. */
export interface SchemaCase {
  /** Describes the spec, such as "spec.static without host". */
  readonly written: string
  readonly kind:
    | 'GatewayBackend'
    | 'AgentgatewayModel'
    | 'GatewayPolicy'
    | 'GatewayParameters'
    | 'GatewayBudget'
  readonly spec: unknown
  /** The path of the problem, such as `spec.a.b[0]`; omitted if the spec is accepted. */
  readonly refusedAt?: string
  /** The message, if both sides must report the same; only custom rules have one. */
  readonly message?: string
}

/** A row of the coverage table, and the examples that show it. */
export interface CaseGroup {
  readonly id: string
  /** Other rows that the same examples cover. */
  readonly shows?: readonly string[]
  readonly cases: readonly SchemaCase[]
}

/** The position of a value in an object. */
export interface Place {
  readonly kind: SchemaCase['kind']
  readonly path: string
  readonly spec: (value: unknown) => unknown
}

/**
 * The place for a path such as `spec.ai.groups[0].providers[0]`. The fields in `beside` are merged
 * into the object at their path.
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

const parents = { parentRefs: [{ name: 'edge' }] }

/** A place in an AgentgatewayModel, which must have a parent. */
export const modelPlace = (path: string): Place =>
  place('AgentgatewayModel', path, { spec: parents })

/** What a test of one example checks. */
export function caseTitle({
  written,
  refusedAt,
}: Pick<SchemaCase, 'written' | 'refusedAt'>): string {
  return `${refusedAt === undefined ? 'accepts' : 'refuses'} ${written}`
}

/** Rows for `it.each`, whose `%s` is the whole title. */
export function byTitle(cases: readonly SchemaCase[]): (readonly [string, SchemaCase])[] {
  return cases.map((example) => [caseTitle(example), example])
}

export const accepted = (at: Place, written: string, value: unknown): SchemaCase => ({
  written: `${at.path} ${written}`,
  kind: at.kind,
  spec: at.spec(value),
})

export const refused = (
  at: Place,
  written: string,
  value: unknown,
  below: string,
  message?: string,
): SchemaCase => ({
  ...accepted(at, written, value),
  refusedAt: below.startsWith('[')
    ? `${at.path}${below}`
    : [at.path, below].filter(Boolean).join('.'),
  message,
})

/** Members of a group, each with a value that is valid alone. */
export type Members = Readonly<Record<string, unknown>>

export const backendRef = { name: 'a', port: 80 }

/** The services that a prompt guard can ask. */
export const guardServices: Members = {
  bedrockGuardrails: { identifier: 'a', version: '1', region: 'a' },
  googleModelArmor: { templateId: 'a', projectId: 'a' },
  azureContentSafety: { endpoint: 'a.example' },
  presidio: { backendRef },
  moderation: { backendRef },
  judge: { backendRef, model: 'a' },
}

export const probes: Members = { http: { path: '/' }, grpc: {}, tcp: {} }

export const healthMembers: Members = {
  unhealthyCondition: 'true',
  eviction: {},
  panicThreshold: 50,
  slowStart: { window: '30s' },
  active: { tcp: {} },
}

export const modelTarget = { modelRef: { name: 'a' } }

/** Fields of `backend` about the endpoints of a backend. */
export const endpoints: Members = {
  sessionAffinity: { source: 'jwt.sub' },
  health: { eviction: {} },
  circuitBreaker: { maxParallelRequests: 1 },
}
