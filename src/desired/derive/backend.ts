/** GatewayBackend: its destination, its own policies, and whether it can be served. */
import type { Destination, PolicyResource } from '../../model/resources.ts'
import { conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { type BackendSpec, specOf } from '../shapes.ts'
import { compileField, type Finding, policyResource } from './compile-policy.ts'
import { expressionFindings } from './expressions.ts'
import { providerGroups } from './model-providers.ts'
import { rejectedConditions } from './rejected.ts'

function destinationOf(spec: BackendSpec): Destination {
  if (spec.static !== undefined) return { type: 'static', ...spec.static }
  if (spec.dynamicForwardProxy !== undefined) return { type: 'dynamic' }
  if (spec.ai !== undefined) return { type: 'ai', groups: providerGroups(spec.ai) }
  return { type: 'unsupported', message: 'spec.mcp is not supported yet' }
}

/** What stands inside the backend itself: for all of it, or for one of its parts. */
interface InlinePlace {
  readonly path: string
  readonly section?: string
  readonly policies: Readonly<Record<string, unknown>> | undefined
}

function inlinePlaces(spec: BackendSpec): readonly InlinePlace[] {
  const groups = spec.ai?.groups ?? []
  const providers = groups.flatMap((group, at) =>
    group.providers.map(({ name, policies }, index) => ({
      path: `spec.ai.groups[${at}].providers[${index}].policies`,
      section: name,
      policies,
    })),
  )
  return [{ path: 'spec.policies', policies: spec.policies }, ...providers]
}

interface InlinePolicies {
  readonly resources: PolicyResource[]
  readonly findings: Finding[]
}

function inlinePolicies(self: ObjectState, spec: BackendSpec, read: Reader): InlinePolicies {
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

/** `ResolvedRefs` is for routes; a backend has the one condition Accepted. */
function accepted(self: ObjectState, destination: Destination, findings: readonly Finding[]) {
  const serious = findings.filter(({ severity }) => severity === 'closed')
  const messages = findings.map(({ message }) => message)
  if (destination.type === 'unsupported') messages.unshift(destination.message)
  if (destination.type === 'dynamic') messages.push(openDestination)
  const message = messages.join('; ')
  return destination.type === 'unsupported' || serious.length > 0
    ? conditionFalse('Accepted', 'TranslationError', self.generation, message)
    : conditionTrue('Accepted', 'Accepted', self.generation, message)
}

export const backendStage: Stage = {
  name: 'backend',
  kinds: ['GatewayBackend'],
  derive(self: ObjectState, read: Reader): Derived {
    if (self.object === undefined) return refusedBackend(self)
    const spec = specOf<BackendSpec>(self.object)
    const destination = destinationOf(spec)
    const { resources, findings } = inlinePolicies(self, spec, read)
    const { namespace, name } = self.ref
    const key = `backend/${namespace}/${name}`
    return {
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
