import type { Age, ObjectRef } from '../model/names.ts'

/** Why a version of an object was refused, and what it was meant for. */
export interface Refusal {
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
  /** Sections that the refused version sets, such as `traffic.authorization`. */
  readonly appliesTo: readonly string[]
}

/** The part of an object's metadata that derivations may look at. */
interface ObservedMetadata {
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly creationTimestamp?: string
}

/** An object as its actor holds it: validated, redacted, without status. */
export interface ObservedObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObservedMetadata
  readonly spec?: unknown
  readonly [field: string]: unknown
}

/** What one actor knows of its resource. */
export interface ObjectState {
  readonly ref: ObjectRef
  readonly uid: string
  readonly resourceVersion: string
  /** Of the object in force; 0 where every version was refused. */
  readonly generation: number
  /** Log position of the event that brought this generation. */
  readonly generationSequence: number
  readonly age: Age
  /** The last valid version; absent where there never was one. */
  readonly object: ObservedObject | undefined
  /** A later version that is invalid; the valid one stays in force. */
  readonly refused: Refusal | undefined
}

interface WrittenTargets {
  readonly targetRefs?: Refusal['targets']
  readonly targetSelectors?: Refusal['targets']
  readonly parentRefs?: Refusal['targets']
}

/** How a valid object is refused on which a derivation has failed; undefined if it is refused already. */
export function refusalAfter(error: unknown, state: ObjectState): Refusal | undefined {
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
