/** Determines the kind of a GatewayBackend: which of its type fields is set. */

import type { BackendDefinition } from '../../gateway/backends/define.ts'
import { backendDefinitions } from '../../gateway/backends/definitions.ts'
import type { ObjectName } from '../../ground/model/names.ts'
import type { GatewayBackendSpec } from '../api/gateway-backend.ts'
import type { Reader } from './graph.ts'
import { specOf } from './specs.ts'

interface DerivedBackendKind {
  readonly definition: BackendDefinition
  /** Value of the spec field of this kind. */
  readonly spec: unknown
}

const definitions: readonly BackendDefinition[] = backendDefinitions

/** Returns undefined only if the spec is invalid. */
export function backendKindOf(spec: GatewayBackendSpec): DerivedBackendKind | undefined {
  const fields: Readonly<Record<string, unknown>> = spec
  const definition = definitions.find(({ field }) => fields[field] !== undefined)
  return definition && { definition, spec: fields[definition.field] }
}

/** The kind of a GatewayBackend; undefined if it does not exist or never had a valid version. */
export function findBackendKind(
  { namespace, name }: ObjectName,
  read: Reader,
): DerivedBackendKind | undefined {
  const object = read.object('GatewayBackend', namespace, name)?.object
  return object && backendKindOf(specOf<'GatewayBackend'>(object))
}

/** The only kind that a field of `backend` in policies applies to; undefined if it applies to all. */
export function kindOfPolicyField(field: string): BackendDefinition | undefined {
  return definitions.find(({ policy }) => policy?.field === field)
}
