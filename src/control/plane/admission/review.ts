/** Reads and answers AdmissionReviews (admission.k8s.io/v1). */
import { isObject, type JsonObject } from '../../../ground/base/json-object.ts'
import type { KubeObject } from '../../kube/index.ts'

export interface AdmissionRequest {
  readonly uid: string
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE'
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string }
  /** The new version; for a deletion, the one that is deleted. */
  readonly object: KubeObject
  /** Whether a controller of the cluster makes the change, such as to delete a namespace. It would retry forever. */
  readonly isCluster: boolean
}

export interface AdmissionAnswer {
  /** Why the object is refused; undefined if it is admitted. */
  readonly refusal?: string
  readonly warnings: readonly string[]
}

/** The API server cuts longer warnings. */
const maxWarningCharacters = 250
const maxWarnings = 10

/** Returns undefined if the text is not a review with an object. */
export function readReview(text: string): AdmissionRequest | undefined {
  const review = parsed(text)
  const request = isObject(review) && isObject(review.request) ? review.request : {}
  const { uid, operation, kind, userInfo } = request
  const object = operation === 'DELETE' ? request.oldObject : request.object
  const isKnown = operation === 'CREATE' || operation === 'UPDATE' || operation === 'DELETE'
  if (typeof uid !== 'string' || !isKnown || !isKind(kind) || !isNamed(object)) return undefined
  const user = isObject(userInfo) ? `${userInfo.username}` : ''
  const isCluster = user.startsWith('system:serviceaccount:kube-system:')
  return { uid, operation, kind, object: object as unknown as KubeObject, isCluster }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isKind = (value: unknown): value is AdmissionRequest['kind'] =>
  isObject(value) && ['group', 'version', 'kind'].every((name) => typeof value[name] === 'string')

const isNamed = (object: unknown): boolean =>
  isObject(object) && isObject(object.metadata) && typeof object.metadata.name === 'string'

export function reviewOf(uid: string, { refusal, warnings }: AdmissionAnswer): JsonObject {
  const shown = warnings.slice(0, maxWarnings).map(cut)
  const left = warnings.length - shown.length
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: {
      uid,
      allowed: refusal === undefined,
      ...(refusal !== undefined && { status: { code: 403, message: refusal } }),
      ...(shown.length > 0 && {
        warnings: left > 0 ? [...shown, `${left} more warnings are not shown`] : shown,
      }),
    },
  }
}

const cut = (text: string): string =>
  text.length <= maxWarningCharacters ? text : `${text.slice(0, maxWarningCharacters)}…`
