/** Finds the Services, GatewayBackends and InferencePools that a value of any shape refers to. */
import type { ObjectName, ObjectRef } from './names.ts'

/** A port of a Service. */
export interface ServiceTarget extends ObjectName {
  readonly type: 'service'
  readonly port: number
}

/** The kind of object that each type of target refers to. */
export const targetKinds = {
  service: 'Service',
  backend: 'GatewayBackend',
  pool: 'InferencePool',
  model: 'AgentgatewayModel',
} as const
type TargetType = keyof typeof targetKinds

const targetTypes: ReadonlyMap<string, TargetType> = new Map(
  (Object.keys(targetKinds) as TargetType[]).map((type) => [targetKinds[type], type]),
)

/** The object that a target refers to. */
export function targetObject({
  type,
  namespace,
  name,
}: ObjectName & { readonly type: TargetType }): ObjectRef {
  return { kind: targetKinds[type], namespace, name }
}

/** Key of the resource that is published for a Service, GatewayBackend or InferencePool. */
export function targetKey({ kind, namespace, name }: ObjectRef): string {
  return `${targetTypes.get(kind)}/${namespace}/${name}`
}

type Members = Readonly<Record<string, unknown>>

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isName = (value: unknown): value is Members & ObjectName =>
  isMembers(value) && typeof value.namespace === 'string' && typeof value.name === 'string'

/** The object that a resource, a target or an ObjectRef names; undefined if its kind is no destination. */
export function namedObject({ type, kind, namespace, name }: Members & ObjectName) {
  for (const [known, knownType] of targetTypes) {
    if (type === knownType || kind === known) return { kind: known, namespace, name }
  }
  return undefined
}

/** Calls `visit` for every destination in a value, at any depth. May visit a destination more than once. */
export function eachDestination(value: unknown, visit: (ref: ObjectRef) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) eachDestination(item, visit)
    return
  }
  if (!isMembers(value)) return
  const destination = isName(value) ? namedObject(value) : undefined
  if (destination !== undefined) visit(destination)
  for (const member of Object.values(value)) eachDestination(member, visit)
}

/** Like `eachDestination`, for the compiled config of a policy. Text that is not JSON has no destinations. */
export function eachDestinationOfConfig(config: unknown, visit: (ref: ObjectRef) => void): void {
  if (typeof config !== 'string') return
  try {
    eachDestination(JSON.parse(config), visit)
  } catch {}
}
