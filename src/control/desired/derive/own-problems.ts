/**
 * Finds mistakes in an object that do not depend on other objects and that its schema cannot find:
 * invalid expressions and patterns, meaningless values, policies that cannot target a kind. Statuses
 * report them too; this reports them by field, for manifests that are not served yet.
 */

import { compileVariants } from '../../../gateway/policies/conditional.ts'
import { findPolicy } from '../../../gateway/policies/registry.ts'
import type { References } from '../../../ground/model/references.ts'
import {
  type PolicyPhase,
  type PolicySection,
  policySections,
} from '../../../ground/model/resources.ts'
import type { AgentgatewayModelSpec } from '../../api/agentgateway-model.ts'
import type { GatewayBackendSpec } from '../../api/gateway-backend.ts'
import type { GatewayPolicySpec } from '../../api/gateway-policy.ts'
import { requestRouteKinds } from '../../api/kinds.ts'
import { inlinePlaces } from './backend.ts'
import { expressionProblems } from './expressions.ts'
import type { CheckRegex } from './http-rule.ts'
import {
  phaseProblem,
  portProblem,
  sectionOf,
  sectionProblem,
  targetKindProblem,
} from './policy-targets.ts'

interface OwnProblem {
  /** Path from the top of the object, such as `spec.rules[0].matches[1].path.value`. */
  readonly path: string
  readonly message: string
}

type Fields = Readonly<Record<string, unknown>>

/** @param object an object that is valid by its schema, with secret values replaced */
export function ownProblems(object: Fields, checkRegex: CheckRegex): OwnProblem[] {
  switch (object.kind) {
    case 'GatewayPolicy':
      return byPath(problemsOfPolicy((object.spec ?? {}) as GatewayPolicySpec))
    case 'GatewayBackend':
      return byPath(problemsOfBackend((object.spec ?? {}) as GatewayBackendSpec))
    case 'AgentgatewayModel':
      return byPath(problemsOfModel((object.spec ?? {}) as AgentgatewayModelSpec))
    default:
      return requestRouteKinds.some((kind) => kind === object.kind)
        ? patternProblems(object.spec, 'spec', checkRegex)
        : []
  }
}

/** Keeps the first problem of each field. */
function byPath(problems: readonly OwnProblem[]): OwnProblem[] {
  const first = new Map<string, OwnProblem>()
  for (const problem of problems) {
    if (!first.has(problem.path)) first.set(problem.path, problem)
  }
  return [...first.values()]
}

function problemsOfPolicy(spec: GatewayPolicySpec): OwnProblem[] {
  const set = policySections.filter((section) => spec[section] !== undefined)
  const ofFields = set.flatMap((section) =>
    fieldProblems(
      'GatewayPolicy',
      section,
      `spec.${section}`,
      spec[section] ?? {},
      section === 'traffic' ? spec.traffic?.phase : undefined,
    ),
  )
  return [...targetProblems(spec, set), ...earlyProblems(spec), ...ofFields]
}

/** Reports fields that cannot run in phase PreRouting. */
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
      const { kind } = target
      const section = sectionOf(target)
      const place = { kind, namespace: '', name: '', ...(section && { section }) }
      const misplaced = set.map((section) => sectionProblem(section, place))
      const early = phaseProblem(
        spec.traffic?.phase === 'PreRouting' ? 'PreRouting' : 'PostRouting',
        kind,
      )
      return [targetKindProblem(target), portProblem(target), early, ...misplaced].flatMap(
        (message) => (message === undefined ? [] : [{ path: `spec.${list}[${at}]`, message }]),
      )
    }),
  )
}

function problemsOfBackend(spec: GatewayBackendSpec): OwnProblem[] {
  const inline = inlinePlaces(spec).flatMap(({ path, policies }) =>
    fieldProblems('GatewayBackend', 'backend', path, policies ?? {}, undefined),
  )
  return [
    ...expressionProblems('GatewayBackend', 'spec', spec, 'PostRouting', 'policies'),
    ...inline,
  ]
}

function problemsOfModel({ policies = {}, ...spec }: AgentgatewayModelSpec): OwnProblem[] {
  return [
    ...expressionProblems('AgentgatewayModel', 'spec', spec),
    ...fieldProblems('AgentgatewayModel', 'backend', 'spec.policies', policies, undefined),
  ]
}

function fieldProblems(
  kind: string,
  section: PolicySection,
  path: string,
  fields: Fields,
  phase: PolicyPhase | undefined,
): OwnProblem[] {
  return Object.entries(fields).flatMap(([field, value]) => {
    if (value === undefined) return []
    const at = `${path}.${field}`
    return [
      ...expressionProblems(kind, at, value, phase),
      ...compileProblems(section, field, at, value),
    ]
  })
}

function compileProblems(
  section: PolicySection,
  field: string,
  path: string,
  spec: unknown,
): OwnProblem[] {
  const definition = findPolicy(section, field)
  if (definition === undefined) return []
  return compileVariants(definition, spec, permissiveReferences)
    .problems.filter((problem) => problem.partial !== true && !isReference(problem.path))
    .map((problem) => ({
      path: problem.path === '' ? path : `${path}.${problem.path}`,
      message: problem.message,
    }))
}

/** Problems of references depend on other objects, so they are not reported. */
const isReference = (path: string) => /(?:Refs?|Selector)(?:\[\d+\])?$/.test(path)

/** Assumes that other objects are there; problems of Secrets and ConfigMaps are filtered by `isReference`. */
const permissiveReferences: References = {
  secret: () => undefined,
  secretsWith: () => [],
  configMap: () => undefined,
  configMapsWith: () => [],
  dynamicApiKeys: () => undefined,
  backend: ({ namespace = '', name }) => ({ type: 'backend', namespace, name }),
  keySet: ({ path }) => ({ uri: path, keySet: { keys: [samplePublicKey] } }),
  issuerProblem: () => undefined,
}

/** An arbitrary public key that can verify signatures (RFC 8037, appendix A.2). */
const samplePublicKey = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
}

/** Reports invalid patterns: values next to `type: RegularExpression`. */
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
