/** Versions of objects that wait for an event, and how events name them. */
import type { JudgedObject } from '../../../events/index.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { hasSameContent } from '../desired/same-content.ts'
import type { ResourceSnapshot } from './resource.machine.ts'

/** How events name the newest version of an object. */
export function judgedVersion({ context: { ref, state } }: ResourceSnapshot): JudgedObject {
  return { ...ref, ...(state && { uid: state.uid, resourceVersion: state.resourceVersion }) }
}

/** Whether a version that waits is the one that an event names. */
export function isNewestVersion(
  newest: ResourceSnapshot | undefined,
  { uid, resourceVersion }: JudgedObject,
): boolean {
  const state = newest?.context.state
  return newest !== undefined && state?.uid === uid && state?.resourceVersion === resourceVersion
}

/** Whether a newest version has the content of the one in force, so that it is no change. */
export function isSameObject(
  passed: ResourceSnapshot | undefined,
  newest: ResourceSnapshot,
): boolean {
  const [before, after] = [passed?.context.state, newest.context.state]
  if (before?.uid !== after?.uid && after !== undefined && before !== undefined) return false
  if (before?.refused !== undefined || after?.refused !== undefined) return false
  return hasSameContent(before?.object, after?.object)
}

/** Whether only the version or annotations differ, such as the one that approves the change. */
export function isSameChange(before: ResourceSnapshot, newest: ResourceSnapshot): boolean {
  const [a, b] = [before.context.state, newest.context.state]
  if (a?.uid !== b?.uid) return false
  if (a?.refused !== undefined || b?.refused !== undefined) return false
  return hasSameContent(withoutAnnotations(a), withoutAnnotations(b))
}

function withoutAnnotations(state: ObjectState | undefined): unknown {
  const { object } = state ?? {}
  return object && { ...object, metadata: { ...object.metadata, annotations: undefined } }
}
