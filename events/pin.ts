import { defineEvent } from './envelope.ts'
import type { ResourceName } from './resource.ts'

/** The version of an object that is put in force again. */
export interface PinnedVersion {
  readonly uid: string
  readonly resourceVersion: string
  readonly generation: number
  /** Milliseconds since the epoch, and a number that orders objects of the same time. */
  readonly age: { readonly created: number; readonly order: number }
  readonly object: Readonly<Record<string, unknown>>
}

export interface PinnedObject extends ResourceName {
  readonly version?: PinnedVersion
}

/** Which of the events of one pin an event is. */
export interface PinPart {
  /** Unique for each pin. */
  readonly pin: string
  /** Counts from 1. */
  readonly number: number
  readonly count: number
}

export interface PinSetData {
  readonly to: number
  readonly only?: readonly ResourceName[]
  readonly objects: readonly PinnedObject[]
  readonly part?: PinPart
  readonly untilChanged?: true
  readonly until?: string
  readonly reason: string
  readonly author: string
}

export const pinSet = defineEvent<PinSetData>()({
  name: 'PinSet',
  type: 'dev.sluice.pin.set.v1',
  version: 1,
  about:
    'An operator has put the configuration of an earlier moment in force, and holds it (`sluice rollback`, `sluice freeze`). Later changes are folded, but wait until the pin is lifted. It replaces an earlier pin.',
  fields: {
    to: 'Position of the log whose configuration is in force.',
    only: 'The objects that are held; omitted if all are. Secrets, ConfigMaps, Services, endpoints, Pods, Namespaces and ReferenceGrants are held only if they are named.',
    objects:
      'The objects of which another version than the newest is in force. Without `version`, the object is not in force at all.',
    part: 'Set if the objects do not fit into one event: which of the `count` events of this `pin` it is. The pin takes effect with the last one, if all others came before it in order; an event of another pin in between gives it up.',
    untilChanged: 'Whether an object whose manifest changes again is no longer held.',
    until: 'Time at which the pin is lifted, in RFC 3339; omitted if an operator lifts it.',
    reason: 'Why, in the words of the operator.',
    author: 'Who has set it.',
  },
})

export interface PinLiftedData {
  readonly reason: string
  readonly author: string
}

export const pinLifted = defineEvent<PinLiftedData>()({
  name: 'PinLifted',
  type: 'dev.sluice.pin.lifted.v1',
  version: 1,
  about: 'An operator has lifted the pin, so that the newest versions of all objects are in force.',
  fields: {
    reason: 'Why, in the words of the operator.',
    author: 'Who has lifted it.',
  },
})
