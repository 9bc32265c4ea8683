/** Where values of any shape lead: the Services, GatewayBackends and InferencePools that they name. */
import type { ObjectName, ObjectRef } from './names.ts'

type Members = Readonly<Record<string, unknown>>

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isName = (value: unknown): value is Members & ObjectName =>
  isMembers(value) && typeof value.namespace === 'string' && typeof value.name === 'string'

/** Both ways in which a destination is written: a target of the model, or a reference by kind. */
function destinationOf(value: Members & ObjectName): ObjectRef | undefined {
  const { namespace, name } = value
  if (value.type === 'service' || value.kind === 'Service') {
    return { kind: 'Service', namespace, name }
  }
  if (value.type === 'backend' || value.kind === 'GatewayBackend') {
    return { kind: 'GatewayBackend', namespace, name }
  }
  if (value.type === 'pool' || value.kind === 'InferencePool') {
    return { kind: 'InferencePool', namespace, name }
  }
  return undefined
}

/** Tells of every destination that a value names, at any depth; of some more than once. */
export function eachDestination(value: unknown, tell: (ref: ObjectRef) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) eachDestination(item, tell)
    return
  }
  if (!isMembers(value)) return
  const destination = isName(value) ? destinationOf(value) : undefined
  if (destination !== undefined) tell(destination)
  for (const member of Object.values(value)) eachDestination(member, tell)
}

/** The same of the compiled form of a policy; one that is no JSON leads nowhere. */
export function eachDestinationOfConfig(config: unknown, tell: (ref: ObjectRef) => void): void {
  if (typeof config !== 'string') return
  try {
    eachDestination(JSON.parse(config), tell)
  } catch {}
}
