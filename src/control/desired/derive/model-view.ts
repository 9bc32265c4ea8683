/** What stages read about an AgentgatewayModel. */
import { gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import type {
  ModelProvider,
  ModelTarget,
  ServedModel,
} from '../../../ground/model/model-providers.ts'
import { type Age, type ObjectRef, objectKey } from '../../../ground/model/names.ts'
import type { ParentRef } from '../../api/gateway-api/common.ts'
import type { HttpRuleSpec } from '../../api/gateway-api/http-route.ts'
import type { IndexDefinition } from '../object-indexes.ts'
import { specOf } from '../specs.ts'
import type { ParentAttachment } from './route-attachment.ts'

export const modelStageName = 'model'
export const modelIndex = 'models'

export interface ModelView {
  readonly age: Age
  readonly match: string
  readonly isInternal: boolean
  /** The parents that serve the model, with the sets there. */
  readonly parents: readonly ServingParent[]
  /** Omitted for virtual models. */
  readonly provider?: ModelProvider
  readonly virtual?: VirtualModel
}

export interface ServingParent extends ParentAttachment {
  /** Names of the sets of models to which the model belongs. */
  readonly sets: readonly string[]
}

/** A model that other models serve, before they are found. */
interface VirtualModel extends Pick<ServedModel, 'choice' | 'affinity' | 'failover'> {
  readonly targets: readonly VirtualTarget[]
}

export interface VirtualTarget extends Omit<ModelTarget, 'provider'> {
  readonly modelRef: string
  readonly model?: string
}

/** Key of the object to which a parentRef refers. */
export function parentKey(
  { kind = 'Gateway', name, ...ref }: ParentRef,
  namespace: string,
): string {
  return objectKey({ kind, namespace: ref.namespace ?? namespace, name })
}

/** Models by the objects to which they attach. */
export const modelsByParent: IndexDefinition = {
  name: modelIndex,
  kinds: ['AgentgatewayModel'],
  keys: ({ ref, object }) => {
    if (object === undefined) return []
    const { parentRefs } = specOf<'AgentgatewayModel'>(object)
    const own = parentRefs.filter(({ group = gatewayGroup }) => group === gatewayGroup)
    return [...new Set(own.map((parent) => parentKey(parent, ref.namespace)))]
  },
}

/**
 * The name of the backend of a set: of a listener, by its name, or of a rule, by its position. No object can have
 * it, because it contains colons.
 */
export const modelSetName = ({ kind, name }: ObjectRef, part: string | number): string =>
  ['models', kind, name, part].join(':')

/** The parent of the backend of a set; undefined for other backends. */
export function parentOfSet(namespace: string, backend: string): ObjectRef | undefined {
  const [prefix, kind, name] = backend.split(':')
  return prefix === 'models' && kind !== undefined && name !== undefined
    ? { kind, namespace, name }
    : undefined
}

/** Returns whether a backendRef stands for the models that refer to its rule. */
export const isModelSetRef = (ref: {
  readonly group?: string
  readonly kind?: string
  readonly name: string
}): boolean => ref.group === ownGroup && ref.kind === 'AgentgatewayModel' && ref.name === '*'

export const servesModels = ({ backendRefs = [] }: HttpRuleSpec): boolean =>
  backendRefs.some(isModelSetRef)
