/** Applies an overlay to an object: first its labels and annotations are added, then the spec is patched. */
import type { NamedOverlay, OverlayName } from './parameters.ts'
import { shapes } from './patch-shape.ts'
import type { RenderedObject } from './plan.ts'
import { isMap, PatchError, strategicMerge } from './strategic-merge.ts'

/** Fields that overlays of a ServiceAccount cannot patch: it has no spec, so all other fields are patched. */
const identity = ['apiVersion', 'kind', 'metadata'] as const

/** @throws PatchError with the path of the field that cannot be applied */
export function applyOverlay(
  object: RenderedObject,
  target: OverlayName,
  { from, labels, annotations, spec }: NamedOverlay,
): RenderedObject {
  const { metadata } = object
  const patched: RenderedObject = {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...labels },
      ...((metadata.annotations ?? annotations) && {
        annotations: { ...metadata.annotations, ...annotations },
      }),
    },
  }
  if (spec === undefined) return patched
  const path = `${from}.spec`
  if (target === 'serviceAccount') return patchFields(patched, spec, path)
  const before = isMap(patched.spec) ? patched.spec : {}
  return { ...patched, spec: merged(before, target, spec, path) }
}

function merged(
  before: Readonly<Record<string, unknown>>,
  target: OverlayName,
  patch: Readonly<Record<string, unknown>>,
  path: string,
): Readonly<Record<string, unknown>> {
  const after = strategicMerge(before, patch, shapes[target], path)
  if (after !== undefined) return after
  throw new PatchError(`${path}: $patch: delete cannot stand here: the object needs its spec`)
}

function patchFields(
  object: RenderedObject,
  spec: Readonly<Record<string, unknown>>,
  path: string,
): RenderedObject {
  const wrong = identity.find((name) => Object.hasOwn(spec, name))
  if (wrong !== undefined) throw new PatchError(`${path}.${wrong}: cannot be set here`)
  const { apiVersion, kind, metadata, ...fields } = object
  return { apiVersion, kind, metadata, ...merged(fields, 'serviceAccount', spec, path) }
}
