import type { Age, ObjectRef } from '../../ground/model/names.ts'
import { hasSameContent } from './same-content.ts'

/** Why a version of an object was refused, and the objects that it refers to. */
export interface RefusedVersion {
  readonly generation: number
  readonly problems: readonly { readonly path: string; readonly message: string }[]
  readonly targets: readonly {
    readonly group?: string
    readonly kind: string
    readonly namespace?: string
    readonly name?: string
    readonly sectionName?: string
    readonly port?: number
    readonly matchLabels?: Readonly<Record<string, string>>
  }[]
  /** Policy fields that the refused version sets, such as `traffic.authorization`. */
  readonly appliesTo: readonly string[]
}

/** The metadata that derivations can read. */
interface ObservedMetadata {
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly creationTimestamp?: string
}

/** An object after validation, with secrets replaced and without status. */
export interface ObservedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObservedMetadata
  readonly spec?: unknown
  readonly [field: string]: unknown
}

/** Everything that is known about an object. */
export interface ObjectState {
  readonly ref: ObjectRef
  readonly uid: string
  readonly resourceVersion: string
  /** Generation of the valid version in use; 0 if every version was refused. */
  readonly generation: number
  /** Log position of the event that introduced this generation. */
  readonly generationSequence: number
  readonly age: Age
  /** The last valid version; undefined if there was none. */
  readonly object: ObservedObject | undefined
  /** Set if a later version is invalid; the last valid version stays in use. */
  readonly refused: RefusedVersion | undefined
  /** Set if an operator holds this version, so that a later one waits. */
  readonly held?: { readonly message: string }
  /** Set if `changeProtection` keeps this version in force, so that a later one waits. */
  readonly waits?: { readonly message: string }
  /** Set if a later version is delivered in steps, or was and is rolled back. */
  readonly delivery?: {
    readonly type: 'Progressing' | 'Paused' | 'RolledBack'
    readonly reason: string
    readonly message: string
  }
}

/** Whether two states of an object in one log are the same. */
export function isSameVersion(a: ObjectState | undefined, b: ObjectState): boolean {
  return (
    a?.uid === b.uid &&
    a.resourceVersion === b.resourceVersion &&
    a.generationSequence === b.generationSequence &&
    a.held?.message === b.held?.message &&
    a.waits?.message === b.waits?.message &&
    a.delivery?.message === b.delivery?.message &&
    hasSameContent(a.age, b.age)
  )
}

/** The generation of the newest version, valid or refused; undefined without an object. */
export const newestGeneration = (state: ObjectState | undefined): number | undefined =>
  state?.refused?.generation ?? state?.generation

/** Says that a version which is not in force waits. `generation` is undefined or null if the object was deleted. */
export const waitsText = (generation: number | null | undefined): string =>
  generation === undefined || generation === null
    ? 'its deletion waits'
    : `generation ${generation} waits`

/** The generation of conditions: that of the refused version if there is no valid one. */
export function generationOf(state: ObjectState): number {
  return state.object === undefined ? (state.refused?.generation ?? 0) : state.generation
}

/** The problems of a refused version in one line. */
export function problemsText({ problems }: Pick<RefusedVersion, 'problems'>): string {
  return problems.map(({ path, message }) => `${path}: ${message}`).join('; ')
}

interface WrittenTargets {
  readonly targetRefs?: RefusedVersion['targets']
  readonly targetSelectors?: RefusedVersion['targets']
  readonly parentRefs?: RefusedVersion['targets']
}

/** Makes a refusal for an object whose derivation threw; undefined if it has no valid version anyway. */
export function refusalAfter(error: unknown, state: ObjectState): RefusedVersion | undefined {
  const { object, generation } = state
  if (object === undefined) return undefined
  const {
    targetRefs = [],
    targetSelectors = [],
    parentRefs = [],
  } = (object.spec ?? {}) as WrittenTargets
  const message = `cannot be used because of an internal error (${String(error)})`
  return {
    generation,
    problems: [{ path: 'spec', message }],
    targets: [...targetRefs, ...targetSelectors, ...parentRefs],
    appliesTo: [],
  }
}
