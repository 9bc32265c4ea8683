/** AgentgatewayModel: derives its provider and its policies, where it is served, and its problems. */
import { failoverRules } from '../../../gateway/backends/ai/models/failover.ts'
import { productProvider } from '../../../gateway/backends/ai/models/products.ts'
import { gatewayGroup } from '../../../ground/model/api-names.ts'
import { compareAge, type ObjectRef } from '../../../ground/model/names.ts'
import type { PolicyResource } from '../../../ground/model/resources.ts'
import type { AgentgatewayModelSpec } from '../../api/agentgateway-model.ts'
import type { ParentRef } from '../../api/gateway-api/common.ts'
import type { HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import { conditionOf, type Failure, joinFailures, joinOwn, notOwn } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { compileField, policyResource } from './compile-policy.ts'
import { endpointNote } from './endpoint-fields.ts'
import { expressionFindings } from './expressions.ts'
import type { Finding } from './finding.ts'
import { resolveModelServer } from './inference-pool.ts'
import { isUsable } from './listeners.ts'
import {
  type ModelView,
  modelIndex,
  modelSetName,
  modelStageName,
  parentKey,
  type ServingParent,
  servesModels,
  type VirtualTarget,
} from './model-view.ts'
import { refusedRoute } from './refused-child.ts'
import { rejectedConditions } from './rejected.ts'
import { attachToParent, type ParentAttachment, parentStatus } from './route-attachment.ts'

export const modelStage: Stage = {
  name: modelStageName,
  kinds: ['AgentgatewayModel'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedRoute(self, read)
    const spec = specOf<'AgentgatewayModel'>(self.object)
    const parents = spec.parentRefs.flatMap((parent) => parentsOf(self, parent, read))
    if (parents.length === 0) return {}
    const { resources, findings } = policiesOf(self, spec, read)
    const server = serverOf(self.ref, spec, read)
    const failures = referenceFailures(self.ref, spec, server?.failure, read)
    const match = matchOf(self.ref, spec)
    const settled = parents.map((parent) => withConflict(self, match, parent, read))
    const closed = findings.filter(({ severity }) => severity === 'closed')
    const served = settled.filter(({ failure }) => failure === undefined)
    return {
      value: { ...viewOf(self, spec, match, server?.target), parents: served } satisfies ModelView,
      resources: served.length === 0 ? [] : resources,
      status: {
        parents: settled.map((parent) =>
          parentStatus(parent.parentRef, [
            ...conditionsOf(self, parent, findings, closed, failures),
            ...rejectedOf(self, parent, read),
          ]),
        ),
      },
    }
  },
}

function conditionsOf(
  { generation }: ObjectState,
  { failure, note }: ParentAttachment,
  findings: readonly Finding[],
  closed: readonly Finding[],
  failures: readonly Failure[],
) {
  const text = [
    ...(note === undefined ? [] : [note]),
    ...findings.map(({ message }) => message),
  ].join('; ')
  const invalid: Failure | undefined =
    closed.length === 0 ? undefined : { reason: 'Invalid', message: text, ...joinOwn(closed) }
  return [
    conditionOf('Accepted', failure ?? invalid, 'Accepted', generation, text),
    conditionOf('ResolvedRefs', joinFailures(failures), 'ResolvedRefs', generation),
  ]
}

/** What proxies reject of the model, and of the set to which it belongs. */
function rejectedOf(
  { ref, generation }: ObjectState,
  { sets, parentRef }: ServingParent,
  read: Reader,
) {
  const own = rejectedConditions(ref, generation, read)
  if (own.length > 0) return own
  const namespace = parentRef.namespace ?? ref.namespace
  return sets
    .flatMap((name) =>
      rejectedConditions({ kind: 'GatewayBackend', namespace, name }, generation, read),
    )
    .slice(0, 1)
}

const matchOf = ({ name }: ObjectRef, { match }: AgentgatewayModelSpec): string =>
  match?.model ?? name

/** What serves the model in the cluster, and why it cannot; undefined if the model refers to nothing there. */
function serverOf(
  { kind, namespace }: ObjectRef,
  { custom, provider }: AgentgatewayModelSpec,
  read: Reader,
) {
  const { backendRef } = custom ?? {}
  if (backendRef === undefined || provider === undefined) return undefined
  return resolveModelServer(backendRef, { kind, namespace }, read)
}

function viewOf(
  { age }: ObjectState,
  spec: AgentgatewayModelSpec,
  match: string,
  server: NonNullable<ReturnType<typeof serverOf>>['target'] | undefined,
) {
  const { provider, virtualModel } = spec
  const base = { age, match, isInternal: spec.visibility === 'Internal' }
  if (provider !== undefined) {
    return { ...base, provider: productProvider({ ...spec, provider }, server) }
  }
  const { weighted, failover, conditional, sessionAffinity } = virtualModel ?? {}
  const choice = weighted ? 'weighted' : conditional ? 'conditional' : 'failover'
  const targets = targetsOf(virtualModel).map(
    ({ modelRef, model, weight = 1, priority = 0, when, conditions: own }): VirtualTarget => ({
      modelRef: modelRef.name,
      weight,
      priority,
      ...(model !== undefined && { model }),
      ...(when !== undefined && { when }),
      ...(own !== undefined && { failover: failoverRules(own) }),
    }),
  )
  const { conditions = {} } = failover ?? {}
  return {
    ...base,
    virtual: {
      choice,
      targets,
      ...(sessionAffinity !== undefined && { affinity: sessionAffinity.source }),
      ...(failover !== undefined && { failover: failoverRules(conditions) }),
    } as const,
  }
}

type Conditions = Parameters<typeof failoverRules>[0]

interface TargetSpec {
  readonly modelRef: { readonly name: string }
  readonly model?: string
  readonly weight?: number
  readonly priority?: number
  readonly when?: string
  readonly conditions?: Conditions
}

function targetsOf(spec: AgentgatewayModelSpec['virtualModel']): readonly TargetSpec[] {
  const { weighted, failover, conditional } = spec ?? {}
  return (weighted ?? failover ?? conditional)?.targets ?? []
}

function policiesOf(
  self: ObjectState,
  { policies = {}, ...spec }: AgentgatewayModelSpec,
  read: Reader,
) {
  const resources: PolicyResource[] = []
  const findings: Finding[] = expressionFindings(
    'AgentgatewayModel',
    'spec',
    spec,
    'PostRouting',
    'policies',
  )
  for (const [field, value] of Object.entries(policies)) {
    if (value === undefined) continue
    const place = {
      owner: self.ref,
      age: self.age,
      section: 'backend',
      phase: 'PostRouting',
    } as const
    const policy = { ...place, field, path: `spec.policies.${field}`, spec: value }
    const compiled = compileField(policy, read)
    findings.push(...compiled.findings)
    const message = endpointNote(policy, 'ai')
    if (message !== undefined) findings.push({ severity: 'note', message })
    const target = { ...self.ref, inline: true }
    if (compiled.effective) resources.push(policyResource(policy, compiled, target))
  }
  return { resources, findings }
}

/** Problems of the models that the model refers to, and of what serves it. */
function referenceFailures(
  { kind, namespace }: ObjectRef,
  { virtualModel }: AgentgatewayModelSpec,
  ofServer: Failure | undefined,
  read: Reader,
): readonly Failure[] {
  const failures = targetsOf(virtualModel).flatMap(({ modelRef: { name }, model }): Failure[] => {
    const label = `AgentgatewayModel ${namespace}/${name}`
    const object = read.object(kind, namespace, name)?.object
    if (object === undefined) {
      return [{ reason: 'BackendNotFound', message: `${label} does not exist`, ...notOwn }]
    }
    const spec = specOf<'AgentgatewayModel'>(object)
    if (spec.virtualModel !== undefined) {
      const message = `${label} is a virtual model; refer to models with a provider`
      return [{ reason: 'InvalidKind', message }]
    }
    const sent = model ?? matchOf({ kind, namespace, name }, spec)
    if (!sent.includes('*')) return []
    const message = `${label} matches ${sent}; set model to the name that the provider gets`
    return [{ reason: 'UnsupportedValue', message }]
  })
  return ofServer === undefined ? failures : [...failures, ofServer]
}

/** Returns the parent as the model attaches to it; nothing for parents of other controllers. */
function parentsOf({ ref }: ObjectState, parentRef: ParentRef, read: Reader): ServingParent[] {
  const { kind = 'Gateway', group = gatewayGroup, namespace = ref.namespace, name } = parentRef
  if (group === gatewayGroup && kind === 'HTTPRoute') {
    return [routeParent(ref, parentRef, { kind, namespace, name }, read)]
  }
  // Listeners admit models as they admit HTTPRoutes.
  const found = attachToParent({ ...ref, kind: 'HTTPRoute' }, [], parentRef, read)
  if (found === undefined) return []
  const attached = found.attached.filter(({ listener }) => isUsable(listener))
  const sets = attached.map(({ listener: { owner, section } }) => modelSetName(owner, section))
  return [{ ...found, attached, sets }]
}

function routeParent(
  model: ObjectRef,
  parentRef: ParentRef,
  route: ObjectRef,
  read: Reader,
): ServingParent {
  const base = { parentRef, gateway: '', attached: [], sets: [] }
  const refuse = (message: string, own = {}): ServingParent => ({
    ...base,
    failure: { reason: 'NoMatchingParent', message, ...own },
  })
  const label = `HTTPRoute ${route.namespace}/${route.name}`
  if (route.namespace !== model.namespace) return refuse(`${label} is in another namespace`)
  const object = read.object(route.kind, route.namespace, route.name)?.object
  if (object === undefined) return refuse(`${label} does not exist`, notOwn)
  const { rules = [] } = specOf<'HTTPRoute'>(object)
  const { sectionName } = parentRef
  const at = rules.findIndex((rule) =>
    sectionName === undefined ? servesModels(rule) : rule.name === sectionName,
  )
  const rule = rules[at]
  if (rule === undefined) {
    const which =
      sectionName === undefined ? 'with the backend AgentgatewayModel *' : `named ${sectionName}`
    return refuse(`${label} has no rule ${which}`, notOwn)
  }
  if (sectionName === undefined && rules.filter(servesModels).length > 1) {
    return refuse(`${label} has several rules with models; set sectionName`)
  }
  const problem = ruleProblem(rule)
  if (problem !== undefined) return refuse(`rule ${at} of ${label} ${problem}`, notOwn)
  return { ...base, failure: undefined, sets: [modelSetName(route, at)] }
}

/** Returns why a rule cannot serve models; undefined if it can. */
function ruleProblem(rule: HttpRuleSpec): string | undefined {
  if (!servesModels(rule) || rule.backendRefs?.length !== 1) {
    return 'must have exactly one backend, AgentgatewayModel *'
  }
  const isPrefix = (rule.matches ?? []).every(
    ({ path }) => (path?.type ?? 'PathPrefix') === 'PathPrefix',
  )
  return isPrefix ? undefined : 'must match paths by prefix only'
}

/** Takes the model out of the sets in which an older one has the same name. */
function withConflict(
  self: ObjectState,
  match: string,
  parent: ServingParent,
  read: Reader,
): ServingParent {
  if (parent.sets.length === 0) return parent
  const key = parentKey(parent.parentRef, self.ref.namespace)
  const rivals = read.index(modelIndex, key).filter(({ ref, age, object }) => {
    const isOlder = compareAge({ ...age, ...ref }, { ...self.age, ...self.ref }) < 0
    return isOlder && object && matchOf(ref, specOf<'AgentgatewayModel'>(object)) === match
  })
  const taken = new Map(
    rivals.flatMap((rival) => setsAt(rival, key, read).map((set) => [set, rival])),
  )
  const sets = parent.sets.filter((set) => !taken.has(set))
  const [winner] = parent.sets.flatMap((set) => taken.get(set)?.ref ?? [])
  if (winner === undefined) return parent
  const message = `AgentgatewayModel ${winner.namespace}/${winner.name} comes first (by age, then by name) and also matches ${match}`
  if (sets.length > 0) return { ...parent, sets, note: message }
  return { ...parent, sets, attached: [], failure: { reason: 'Conflicted', message, ...notOwn } }
}

/** The sets to which a model attaches at one object. */
function setsAt(model: ObjectState, key: string, read: Reader): readonly string[] {
  if (model.object === undefined) return []
  return specOf<'AgentgatewayModel'>(model.object)
    .parentRefs.filter((parent) => parentKey(parent, model.ref.namespace) === key)
    .flatMap((parent) => parentsOf(model, parent, read).flatMap(({ sets }) => sets))
}
