/** GatewayBackend: its destination, its own policies, and whether it can be served. */
import type { GatewayBackendSpec } from '../../api/gateway-backend.ts'
import type { McpTarget } from '../../model/mcp-targets.ts'
import { objectKey } from '../../model/names.ts'
import type { Destination, PolicyResource } from '../../model/resources.ts'
import { allOwn, conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { specOf } from '../specs.ts'
import { compileField, policyResource } from './compile-policy.ts'
import { expressionFindings } from './expressions.ts'
import type { Finding } from './finding.ts'
import { findMcpTargets } from './mcp-targets.ts'
import { providerGroups } from './model-providers.ts'
import { rejectedConditions } from './rejected.ts'

function destinationOf(spec: GatewayBackendSpec, targets: readonly McpTarget[]): Destination {
  if (spec.static !== undefined) return { type: 'static', ...spec.static }
  if (spec.dynamicForwardProxy !== undefined) return { type: 'dynamic' }
  if (spec.ai !== undefined) return { type: 'ai', groups: providerGroups(spec.ai) }
  const isStateless = spec.mcp?.sessionRouting === 'Stateless'
  return { type: 'mcp', targets, isStateless }
}

/** What stands inside the backend itself: for all of it, or for one of its parts. */
interface InlinePlace {
  readonly path: string
  readonly section?: string
  readonly policies: Readonly<Record<string, unknown>> | undefined
}

export function inlinePlaces(spec: GatewayBackendSpec): readonly InlinePlace[] {
  const groups = spec.ai?.groups ?? []
  const providers = groups.flatMap((group, at) =>
    group.providers.map(({ name, policies }, index) => ({
      path: `spec.ai.groups[${at}].providers[${index}].policies`,
      section: name,
      policies,
    })),
  )
  const targets = (spec.mcp?.targets ?? []).map((target, at) => ({
    path: `spec.mcp.targets[${at}].static.policies`,
    section: target.name,
    policies: target.static?.policies,
  }))
  return [{ path: 'spec.policies', policies: spec.policies }, ...providers, ...targets]
}

interface InlinePolicies {
  readonly resources: PolicyResource[]
  readonly findings: Finding[]
}

function inlinePolicies(self: ObjectState, spec: GatewayBackendSpec, read: Reader): InlinePolicies {
  const found: InlinePolicies = {
    resources: [],
    findings: expressionFindings('GatewayBackend', 'spec', spec, 'policies'),
  }
  const kind = spec.ai !== undefined ? 'ai' : spec.mcp !== undefined ? 'mcp' : 'other'
  for (const place of inlinePlaces(spec)) {
    for (const [field, value] of Object.entries(place.policies ?? {})) {
      if (value === undefined) continue
      if ((field === 'ai' || field === 'mcp') && field !== kind) {
        const message = `${place.path}.${field} has no effect on this type of backend`
        found.findings.push({ severity: 'note', message })
      } else addInline(self, place, { field, value }, read, found)
    }
  }
  return found
}

function addInline(
  self: ObjectState,
  { path, section }: InlinePlace,
  { field, value }: { readonly field: string; readonly value: unknown },
  read: Reader,
  { resources, findings }: InlinePolicies,
): void {
  const place = {
    owner: self.ref,
    age: self.age,
    section: 'backend',
    phase: 'PostRouting',
  } as const
  const policy = { ...place, field, path: `${path}.${field}`, spec: value }
  const compiled = compileField(policy, read)
  findings.push(...compiled.findings)
  const target = { ...self.ref, ...(section !== undefined && { section }), inline: true }
  if (compiled.effective) resources.push(policyResource(policy, compiled, target))
}

const openDestination =
  'clients choose the destination: put access control in front of this backend'

/** What routes read of a backend: the Services behind it, which policies may target. */
export interface BackendView {
  /** Keys of objects. */
  readonly services: readonly string[]
  /** Names that policies may give to targets. */
  readonly sections: readonly string[]
}

function servicesOf(targets: readonly McpTarget[]): string[] {
  const keys = targets.flatMap(({ destination }) =>
    destination.type === 'service' ? [objectKey({ kind: 'Service', ...destination })] : [],
  )
  return [...new Set(keys)].sort()
}

/** `ResolvedRefs` is for routes; a backend has the one condition Accepted. */
function accepted(self: ObjectState, destination: Destination, findings: readonly Finding[]) {
  const serious = findings.filter(({ severity }) => severity === 'closed')
  const messages = findings.map(({ message }) => message)
  if (destination.type === 'unsupported') messages.unshift(destination.message)
  if (destination.type === 'dynamic') messages.push(openDestination)
  const message = messages.join('; ')
  const { own } = allOwn(destination.type === 'unsupported' ? [destination, ...serious] : serious)
  return destination.type === 'unsupported' || serious.length > 0
    ? conditionFalse('Accepted', 'TranslationError', self.generation, message, own)
    : conditionTrue('Accepted', 'Accepted', self.generation, message)
}

const noTargets = { targets: [], notes: [] }

export const backendStage: Stage = {
  name: 'backend',
  kinds: ['GatewayBackend'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedBackend(self)
    const spec = specOf<'GatewayBackend'>(self.object)
    const { namespace, name } = self.ref
    const { targets, notes } =
      spec.mcp === undefined ? noTargets : findMcpTargets(spec.mcp, namespace, read)
    const destination = destinationOf(spec, targets)
    const { resources, findings } = inlinePolicies(self, spec, read)
    for (const message of notes) findings.push({ severity: 'note', message })
    const sections = [...new Set(targets.flatMap((target) => target.sections))].sort()
    const view: BackendView = { services: servicesOf(targets), sections }
    const key = `backend/${namespace}/${name}`
    return {
      ...(targets.length > 0 && { value: view }),
      resources: [{ type: 'backend', key, namespace, name, destination }, ...resources],
      status: {
        conditions: [
          accepted(self, destination, findings),
          ...rejectedConditions(self.ref, self.generation, read),
        ],
      },
    }
  },
}

function refusedBackend({ refused }: ObjectState): Derived {
  if (refused === undefined) return {}
  const message = refused.problems.map((problem) => `${problem.path}: ${problem.message}`)
  const condition = conditionFalse(
    'Accepted',
    'TranslationError',
    refused.generation,
    message.join('; '),
  )
  return { status: { conditions: [condition] } }
}
