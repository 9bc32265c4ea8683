/** Finds references to objects that manifests do not define; a cluster may have these objects. */
import type { ResourceApplied } from '../../../../events/index.ts'
import { kinds } from '../../../control/api/kinds.ts'
import { type Reference, referencesOf } from '../../../control/api/references.ts'
import {
  isGranted,
  policyReferrer,
  type Referrer,
} from '../../../control/desired/derive/references.ts'
import type { ObjectState } from '../../../control/desired/object-state.ts'
import { isUnreadable, type SourceProblem } from '../../../control/watch/source-problem.ts'
import { nearest } from '../../../ground/base/suggest.ts'
import { defaultClassName } from '../../../ground/model/api-names.ts'
import { matchesSelector } from '../../../ground/model/label-selector.ts'
import { type ObjectRef, objectKey, objectText } from '../../../ground/model/names.ts'
import type { Fold } from '../../../past/replay/index.ts'
import type { FieldPlaces } from './field-places.ts'
import type { Recording } from './recording.ts'
import { writtenObjects } from './written-objects.ts'

/** A field of a reference, and why the reference leads nowhere. */
interface Finding {
  readonly field: string
  readonly message: string
}

/**
 * One warning for each reference from a manifest that the manifests do not resolve, in the order of the
 * files. Returns none if a file is unreadable, since it may define the objects.
 */
export function unresolvedReferences(
  recording: Pick<Recording, 'events' | 'problems'>,
  fold: Fold,
  places: FieldPlaces,
): SourceProblem[] {
  if (recording.problems.some(isUnreadable)) return []
  const objects = new KnownObjects(fold)
  return writtenObjects(recording).flatMap((written) => warningsOf(written, fold, objects, places))
}

function warningsOf(
  written: ResourceApplied['data'],
  fold: Fold,
  objects: KnownObjects,
  places: FieldPlaces,
): SourceProblem[] {
  const { kind, namespace, name } = written
  const ref = { kind, namespace, name }
  const warnings = referencesOfObject(ref, fold).flatMap((reference) =>
    objects.findings(ref, reference).map(({ field, message }): SourceProblem => {
      const path = field === '' ? reference.path : `${reference.path}.${field}`
      const place = places.find(written, path)
      return { severity: 'warning', reason: 'unresolved', ...place, ...ref, path, message }
    }),
  )
  return warnings.sort(
    ({ line: a = 0, column: c = 0 }, { line: b = 0, column: d = 0 }) => a - b || c - d,
  )
}

/** The references of an object; none if the object is invalid. */
export function referencesOfObject(ref: ObjectRef, fold: Fold): Reference[] {
  const object = fold.graph.object(objectKey(ref))?.object
  return object === undefined ? [] : referencesOf(object, ref.namespace)
}

/** Kinds to which objects of other namespaces may refer without a ReferenceGrant. */
const openKinds = new Set(['Gateway', 'ListenerSet', 'GatewayParameters'])

class KnownObjects {
  readonly #fold: Fold
  readonly #byKind: ReadonlyMap<string, readonly ObjectState[]>

  constructor(fold: Fold) {
    this.#fold = fold
    this.#byKind = Map.groupBy(fold.graph.objects(), ({ ref }) => `${ref.kind}/${ref.namespace}`)
  }

  findings(from: ObjectRef, reference: Reference): Finding[] {
    const missing = this.#missing(reference)
    const refused = this.#refusal(from, reference)
    return [missing, refused].filter((finding) => finding !== undefined)
  }

  #missing({ kind, namespace, by }: Reference): Finding | undefined {
    const { field } = by
    if (field !== 'matchLabels') {
      const ref = { kind, namespace, name: by.name }
      if (this.#fold.graph.object(objectKey(ref)) !== undefined) return undefined
      const hint = kind === 'GatewayClass' ? classHint(by.name) : ''
      return { field, message: `${objectText(ref)} is not in these files${hint}` }
    }
    const isSelected = this.#all(kind, namespace).some(({ object }) =>
      matchesSelector({ matchLabels: by.labels }, object?.metadata.labels ?? {}),
    )
    if (isSelected) return undefined
    const labels = Object.entries(by.labels).map(([name, value]) => `${name}=${value}`)
    const message = `no ${kind} of namespace ${namespace} in these files has ${labels.join(', ')}`
    return { field, message }
  }

  #refusal(from: ObjectRef, { group, kind, namespace, by }: Reference): Finding | undefined {
    if (namespace === from.namespace || by.field !== 'name' || openKinds.has(kind)) return undefined
    const grants = this.#all('ReferenceGrant', namespace)
    const referrer = referrerOf(from)
    if (isGranted(referrer, { group, kind, namespace, name: by.name }, grants)) return undefined
    const message = `no ReferenceGrant of namespace ${namespace} in these files permits ${referrer.kind} objects of ${from.namespace} to refer to ${kind} ${by.name}`
    return { field: 'namespace', message }
  }

  #all(kind: string, namespace: string): readonly ObjectState[] {
    return this.#byKind.get(`${kind}/${namespace}`) ?? []
  }
}

/** Names the class that always exists if a name looks as if it was meant. */
function classHint(name: string): string {
  const isMeant = /sluice|gateway/i.test(name) || nearest(name, [defaultClassName]) !== undefined
  return isMeant ? `; the class that needs no manifest is ${defaultClassName}` : ''
}

/** Policies inside a GatewayBackend refer to other objects as a GatewayPolicy does. */
function referrerOf({ kind, namespace }: ObjectRef): Referrer {
  if (kind === 'GatewayBackend') return policyReferrer(namespace)
  return { group: kinds.find((row) => row.kind === kind)?.group ?? '', kind, namespace }
}
