/**
 * What is wrong with an object by itself, whatever else exists, and beyond what its schema can say:
 * expressions and patterns that are none, values that mean nothing, targets that take no such policy.
 * Statuses tell all of it too; this tells it of manifests that nobody serves yet, by field.
 */
import type { GatewayBackendSpec } from '../../api/gateway-backend.ts'
import type { GatewayPolicySpec } from '../../api/policy-spec.ts'
import type { References } from '../../model/references.ts'
import type { PolicySection } from '../../model/resources.ts'
import { findPolicy } from '../../policies/registry.ts'
import { inlinePlaces } from './backend.ts'
import { expressionProblems } from './expressions.ts'
import type { CheckRegex } from './http-rule.ts'
import { phaseProblem, sectionProblem, targetKindProblem } from './policy-targets.ts'

interface OwnProblem {
  /** From the top of the object, such as `spec.rules[0].matches[1].path.value`. */
  readonly path: string
  readonly message: string
}

type Fields = Readonly<Record<string, unknown>>

/** @param object valid by its schema, secret values taken out */
export function ownProblems(object: Fields, checkRegex: CheckRegex): OwnProblem[] {
  switch (object.kind) {
    case 'GatewayPolicy':
      return byPath(problemsOfPolicy((object.spec ?? {}) as GatewayPolicySpec))
    case 'GatewayBackend':
      return byPath(problemsOfBackend((object.spec ?? {}) as GatewayBackendSpec))
    case 'HTTPRoute':
    case 'GRPCRoute':
      return patternProblems(object.spec, 'spec', checkRegex)
    default:
      return []
  }
}

/** The first that was found of each field. */
function byPath(problems: readonly OwnProblem[]): OwnProblem[] {
  const first = new Map<string, OwnProblem>()
  for (const problem of problems) {
    if (!first.has(problem.path)) first.set(problem.path, problem)
  }
  return [...first.values()]
}

const sections: readonly PolicySection[] = ['frontend', 'traffic', 'backend']

function problemsOfPolicy(spec: GatewayPolicySpec): OwnProblem[] {
  const set = sections.filter((section) => spec[section] !== undefined)
  const ofFields = set.flatMap((section) =>
    fieldProblems('GatewayPolicy', section, `spec.${section}`, spec[section] ?? {}),
  )
  return [...targetProblems(spec, set), ...earlyProblems(spec), ...ofFields]
}

/** Fields that never run before routing. */
function earlyProblems({ traffic }: GatewayPolicySpec): OwnProblem[] {
  if (traffic?.phase !== 'PreRouting') return []
  return Object.keys(traffic)
    .filter((field) => findPolicy('traffic', field)?.preRouting === false)
    .map((field) => ({
      path: `spec.traffic.${field}`,
      message: 'does not run in phase PreRouting',
    }))
}

function targetProblems(spec: GatewayPolicySpec, set: readonly PolicySection[]): OwnProblem[] {
  return (['targetRefs', 'targetSelectors'] as const).flatMap((list) =>
    (spec[list] ?? []).flatMap((target, at) => {
      const { kind, sectionName } = target
      const place = { kind, namespace: '', name: '', ...(sectionName && { section: sectionName }) }
      const misplaced = set.map((section) => sectionProblem(section, place))
      const early = phaseProblem(
        spec.traffic?.phase === 'PreRouting' ? 'PreRouting' : 'PostRouting',
        kind,
      )
      return [targetKindProblem(target), early, ...misplaced].flatMap((message) =>
        message === undefined ? [] : [{ path: `spec.${list}[${at}]`, message }],
      )
    }),
  )
}

function problemsOfBackend(spec: GatewayBackendSpec): OwnProblem[] {
  const inline = inlinePlaces(spec).flatMap(({ path, policies }) =>
    fieldProblems('GatewayBackend', 'backend', path, policies ?? {}),
  )
  return [...expressionProblems('GatewayBackend', 'spec', spec, 'policies'), ...inline]
}

function fieldProblems(
  kind: string,
  section: PolicySection,
  path: string,
  fields: Fields,
): OwnProblem[] {
  return Object.entries(fields).flatMap(([field, value]) => {
    if (value === undefined) return []
    const at = `${path}.${field}`
    return [...expressionProblems(kind, at, value), ...compileProblems(section, field, at, value)]
  })
}

function compileProblems(
  section: PolicySection,
  field: string,
  path: string,
  spec: unknown,
): OwnProblem[] {
  const compiled = findPolicy(section, field)?.compile?.(spec, allThere)
  return (compiled?.problems ?? [])
    .filter((problem) => problem.partial !== true && !isReference(problem.path))
    .map((problem) => ({
      path: problem.path === '' ? path : `${path}.${problem.path}`,
      message: problem.message,
    }))
}

/** Whether what is referred to exists, and is fit, is a question about other objects. */
const isReference = (path: string) => /(?:Refs?|Selector)(?:\[\d+\])?$/.test(path)

/** Another object may be there and be what is needed; `isReference` leaves out what cannot be assumed. */
const allThere: References = {
  secret: () => undefined,
  secretsWith: () => [],
  configMap: () => undefined,
  backend: ({ namespace = '', name }) => ({ type: 'backend', namespace, name }),
  keySet: ({ path }) => ({ uri: path, keySet: { keys: [someKey] } }),
}

/** Any key that can verify (RFC 8037, appendix A.2). */
const someKey = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
}

/** Values beside `type: RegularExpression` that are no patterns. */
function patternProblems(value: unknown, path: string, checkRegex: CheckRegex): OwnProblem[] {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) {
    return value.flatMap((item, at) => patternProblems(item, `${path}[${at}]`, checkRegex))
  }
  const fields = value as Fields
  const isPattern = fields.type === 'RegularExpression'
  return Object.entries(fields).flatMap(([name, field]) => {
    const at = `${path}.${name}`
    if (!isPattern || name === 'type' || name === 'name')
      return patternProblems(field, at, checkRegex)
    const message = typeof field === 'string' ? checkRegex(field) : undefined
    return message === undefined ? [] : [{ path: at, message }]
  })
}
