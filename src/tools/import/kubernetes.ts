/** Reads Kubernetes objects that need few changes or none. */

import { isObject } from '../../ground/base/json-object.ts'
import { controllerName, gatewayGroup } from '../../ground/model/api-names.ts'
import type { Conversion, ImportedManifest } from './conversion.ts'
import type { SourceDocument, SourceField } from './field.ts'
import { fieldsOf, labelOf, objectKind } from './source.ts'

/** Fields that a cluster adds to objects. */
const clusterFields = [
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'managedFields',
  'selfLink',
]
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** The metadata of an object without what a cluster has added. */
function metadataOf(field: SourceField): ImportedManifest['metadata'] {
  const metadata = field.take('metadata')
  if (!isObject(metadata)) return { name: '' }
  const kept = Object.entries(metadata).filter(([name]) => !clusterFields.includes(name))
  const { annotations, ...rest } = Object.fromEntries(kept)
  const others = isObject(annotations)
    ? Object.fromEntries(Object.entries(annotations).filter(([name]) => name !== lastApplied))
    : {}
  const hasAnnotations = Object.keys(others).length > 0
  return { ...rest, ...(hasAnnotations && { annotations: others }) } as ImportedManifest['metadata']
}

/** The object as it was written, without what a cluster has added. */
export function wholeObject(field: SourceField): ImportedManifest {
  const { status: _status, ...value } = field.object()
  return { ...value, metadata: metadataOf(field) } as unknown as ImportedManifest
}

/** Kinds of the core API and of the Gateway API are read by Sluice as they are. */
export function isStandard(document: SourceDocument): boolean {
  const { group = 'none' } = objectKind(document) ?? {}
  return [
    '',
    gatewayGroup,
    'inference.networking.k8s.io',
    'discovery.k8s.io',
    'apps',
    'batch',
  ].includes(group)
}

/** Names must be texts, because other objects refer to them. */
function identityProblem(field: SourceField): string | undefined {
  const { name, namespace } = field.object('metadata')
  if (typeof name !== 'string' || name === '') return 'metadata.name must be a text'
  if (namespace === undefined || namespace === null || typeof namespace === 'string') return
  return 'metadata.namespace must be a text'
}

/** Name and namespace of an object that `openObject` has opened. */
export function namesOf(field: SourceField): { name: string; namespace: string | undefined } {
  const { name, namespace } = field.object('metadata')
  return { name: String(name), namespace: typeof namespace === 'string' ? namespace : undefined }
}

/** Opens a document of a Kubernetes object. Reports and returns undefined for anything else. */
export function openObject(document: SourceDocument, result: Conversion): SourceField | undefined {
  if (objectKind(document) !== undefined) {
    const field = result.open(document, labelOf(document))
    const problem = identityProblem(field)
    if (problem !== undefined) {
      return field.refuse('protection', `${problem}; the object was not read`)
    }
    field.ignore('apiVersion', 'kind', 'metadata', 'status')
    return field
  }
  const field = result.open(document)
  field.take()
  // Nothing of the document is known, so that it may protect something.
  return field.report('protection', 'is not a Kubernetes object, and was not read')
}

/** Whether the object names a product by its API group or by its GatewayClass controller. */
export function isObjectOf(document: SourceDocument, group: string): boolean {
  const found = objectKind(document)
  return found?.group === group || (found?.kind === 'GatewayClass' && isClassOf(document, group))
}

function isClassOf(document: SourceDocument, group: string): boolean {
  const { spec } = fieldsOf(document)
  return isObject(spec) && String(spec.controllerName).startsWith(`${group}/`)
}

/** Points a GatewayClass of the product with this API group to Sluice's controller. */
export function convertClass(object: ImportedManifest, group: string): ImportedManifest {
  const { kind, spec } = object
  if (kind !== 'GatewayClass' || !isObject(spec)) return object
  const isOurs = String(spec.controllerName).startsWith(`${group}/`)
  return isOurs ? { ...object, spec: { ...spec, controllerName } } : object
}
