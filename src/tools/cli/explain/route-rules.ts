/** Evaluates the authorization rules of each route to a backend for one of its items or methods. */
import { activationOf, type CelResult, compileCel } from '../../../engines/cel/index.ts'
import type { AccessConfig } from '../../../gateway/policies/access/config.ts'
import {
  backendLevels,
  type Levels,
  type ListenerPlace,
  ruleLevels,
} from '../../../gateway/policies/merge.ts'
import { objectText } from '../../../ground/model/names.ts'
import type {
  PolicySection,
  RouteResource,
  VersionedResource,
} from '../../../ground/model/resources.ts'
import { fieldsAt, policiesByTarget } from '../../../past/explain/effective-policies.ts'

export type Verdict = 'allowed' | 'refused' | 'depends on the client'

/** An item or method of a backend. */
interface RuleQuestion {
  /** The GatewayBackend, as `namespace/name`. */
  readonly backend: string
  /** Section names whose policies apply, too. */
  readonly sections: readonly string[]
  /** The field of `backend` in policies that has the rules. */
  readonly field: 'mcp' | 'a2a'
  /** The variables of expressions that do not depend on a client. */
  readonly known: Known
  /** The variables that XAccessPolicies read, with the names that the client uses in its message. */
  readonly knownOfMessage: Known
}

type Known = Readonly<Record<string, CelResult>>

/** The verdict for clients of one rule of a route. */
export interface RouteVerdict {
  /** `Kind namespace/name` and the position of the rule. */
  readonly route: string
  readonly hosts: readonly string[]
  readonly verdict: Verdict
  /** The verdict of XAccessPolicies, which refuse requests but remove nothing from lists. */
  readonly access: Verdict
  /** The rules that decide, with the policies that they are from. */
  readonly rules: readonly string[]
}

export function routeVerdicts(
  resources: readonly VersionedResource[],
  question: RuleQuestion,
): RouteVerdict[] {
  return resources.flatMap(({ resource }) => {
    if (resource.type !== 'route' || !leadsTo(resource, question.backend)) return []
    const { rules, access } = rulesFor(resources, resource, question)
    const { route, ruleIndex, attachments } = resource
    const hosts = attachments.flatMap(({ hostnames }) => hostnames).filter((host) => host !== '')
    return [
      {
        route: `${objectText(route)} rule ${ruleIndex}`,
        hosts: [...new Set(hosts)],
        verdict: verdictOf(rules),
        access: verdictOf(access),
        rules: [...rules, ...access].map(({ action, expressions, policy, result }) => {
          return `${action} rule of ${policy}: ${expressions.join(' || ')} (${result})`
        }),
      },
    ]
  })
}

const leadsTo = ({ backends }: RouteResource, backend: string): boolean =>
  backends.some(
    ({ target }) => target.type === 'backend' && `${target.namespace}/${target.name}` === backend,
  )

interface JudgedRule {
  readonly action: 'Allow' | 'Deny' | 'Require'
  readonly expressions: readonly string[]
  readonly policy: string
  readonly result: 'true' | 'false' | 'depends on the client'
}

interface RouteRules {
  readonly rules: readonly JudgedRule[]
  /** Those of XAccessPolicies. */
  readonly access: readonly JudgedRule[]
}

/** The rules that apply to clients of a route, with their results. */
function rulesFor(
  resources: readonly VersionedResource[],
  route: RouteResource,
  { backend, sections, field, known, knownOfMessage }: RuleQuestion,
): RouteRules {
  const context = { policies: policiesByTarget(resources), originOf: () => undefined }
  const places = route.attachments.flatMap(({ listener }) => placeOf(resources, listener) ?? [])
  const [namespace = '', name = ''] = backend.split('/')
  const object = { kind: 'GatewayBackend', namespace, name }
  const inForce = (section: PolicySection, wanted: string, levels: Levels) =>
    fieldsAt(context, section, 'PostRouting', levels)
      .filter((one) => one.field === wanted)
      .flatMap(({ policies }) => policies.filter(({ state }) => state === 'in force'))
  const levels = places.map((place) => ruleLevels(place, route))
  const found = levels.flatMap((above) =>
    inForce('backend', field, backendLevels(above, { backend: object, sections })),
  )
  const access = levels.flatMap((above) => inForce('traffic', 'access', above))
  return {
    rules: judged(found, ({ authorization }: { authorization?: RuleConfig }) =>
      authorization === undefined
        ? []
        : [{ ...authorization, result: resultOf(authorization.expressions, known) }],
    ),
    access: judged(access, (config: AccessConfig) => accessRules(config, knownOfMessage)),
  }
}

type RuleConfig = Pick<JudgedRule, 'action' | 'expressions'>
type PolicyInForce = ReturnType<typeof fieldsAt>[number]['policies'][number]

/** Judges each policy once. If a policy cannot be enforced, all requests to which it applies are refused. */
function judged<Config>(
  policies: readonly PolicyInForce[],
  judge: (config: Config) => readonly Omit<JudgedRule, 'policy'>[],
): JudgedRule[] {
  const byName = new Map(policies.map((one) => [objectText(one.policy), one]))
  return [...byName].flatMap(([policy, { config, unenforceable }]) => {
    if (unenforceable !== undefined) {
      const expressions = [`the policy cannot be applied, because ${unenforceable}`]
      return [{ action: 'Require' as const, expressions, policy, result: 'false' as const }]
    }
    return judge((config ?? {}) as Config).map((rule) => ({ ...rule, policy }))
  })
}

function accessRules({ rules, extAuth }: AccessConfig, known: Known): Omit<JudgedRule, 'policy'>[] {
  const result = rules === undefined ? 'true' : resultOf(rules, known)
  const expressions = rules ?? ['every request']
  if (extAuth === undefined) return [{ action: 'Require', expressions, result }]
  // The service decides about requests that match.
  if (result === 'false') return []
  return [{ action: 'Require', expressions, result: 'depends on the client' }]
}

function placeOf(resources: readonly VersionedResource[], key: string): ListenerPlace | undefined {
  const found = resources.find(({ resource }) => resource.key === key)?.resource
  if (found?.type !== 'listener') return undefined
  return { ...found, gateway: { kind: 'Gateway', ...found.gateway } }
}

/** Evaluates the expressions with the variables that do not depend on a client. */
function resultOf(expressions: readonly string[], known: Known): JudgedRule['result'] {
  const results = expressions.map((source) => {
    const compiled = compileCel(source)
    return compiled.ok ? compiled.value.evaluate(activationOf(known)) : undefined
  })
  if (results.includes(true)) return 'true'
  return results.every((result) => result === false) ? 'false' : 'depends on the client'
}

function verdictOf(rules: readonly JudgedRule[]): Verdict {
  const of = (action: JudgedRule['action']) => rules.filter((rule) => rule.action === action)
  const [deny, require, allow] = [of('Deny'), of('Require'), of('Allow')]
  const isRefused =
    deny.some(({ result }) => result === 'true') ||
    require.some(({ result }) => result === 'false') ||
    (allow.length > 0 && allow.every(({ result }) => result === 'false'))
  if (isRefused) return 'refused'
  const isAllowed =
    deny.every(({ result }) => result === 'false') &&
    require.every(({ result }) => result === 'true') &&
    (allow.length === 0 || allow.some(({ result }) => result === 'true'))
  return isAllowed ? 'allowed' : 'depends on the client'
}
