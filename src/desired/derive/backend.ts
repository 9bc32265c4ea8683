/** GatewayBackend: its destination, its own policies, and whether it can be served. */
import type { Destination, PolicyResource } from '../../model/resources.ts'
import { conditionFalse, conditionTrue } from '../conditions.ts'
import type { Derived, Reader, Stage } from '../graph.ts'
import type { ObjectState } from '../object-state.ts'
import { type BackendSpec, specOf } from '../shapes.ts'
import { compileField, type Finding, policyResource } from './compile-policy.ts'
import { expressionFindings } from './expressions.ts'
import { rejectedConditions } from './rejected.ts'

function destinationOf(spec: BackendSpec): Destination {
  if (spec.static !== undefined) return { type: 'static', ...spec.static }
  if (spec.dynamicForwardProxy !== undefined) return { type: 'dynamic' }
  const type = spec.ai === undefined ? 'mcp' : 'ai'
  return { type: 'unsupported', message: `spec.${type} is not supported yet` }
}

function inlinePolicies(
  self: ObjectState,
  spec: BackendSpec,
  read: Reader,
): { resources: PolicyResource[]; findings: Finding[] } {
  const resources: PolicyResource[] = []
  const findings: Finding[] = expressionFindings('GatewayBackend', 'spec', spec, 'policies')
  const kind = spec.ai !== undefined ? 'ai' : spec.mcp !== undefined ? 'mcp' : 'other'
  for (const [field, value] of Object.entries(spec.policies ?? {})) {
    if (value === undefined) continue
    const path = `spec.policies.${field}`
    if ((field === 'ai' || field === 'mcp') && field !== kind) {
      findings.push({ severity: 'note', message: `${path} has no effect on this type of backend` })
      continue
    }
    const place = {
      owner: self.ref,
      age: self.age,
      section: 'backend',
      phase: 'PostRouting',
    } as const
    const policy = { ...place, field, path, spec: value }
    const compiled = compileField(policy, read)
    findings.push(...compiled.findings)
    const target = { ...self.ref, inline: true }
    if (compiled.effective) resources.push(policyResource(policy, compiled, target))
  }
  return { resources, findings }
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
