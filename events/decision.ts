import { defineEvent, type EventOf } from './envelope.ts'
import type { ResourceName } from './resource.ts'

export interface ConditionsDecidedData extends ResourceName {
  readonly generation: number
  readonly status: Readonly<Record<string, unknown>>
  readonly causes?: readonly number[]
  readonly moreCauses?: boolean
}

export const conditionsDecided = defineEvent<ConditionsDecidedData>()({
  name: 'ConditionsDecided',
  type: 'dev.sluice.conditions.decided.v1',
  version: 1,
  about: 'The status of an object was decided. This is an output: the fold never reads it.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    generation: 'Generation of the object that the status is about.',
    status: 'Our complete part of the status; empty if the object no longer has one.',
    causes:
      'Positions of the events that changed the status since the last decision about the object, in order; at most the first 16.',
    moreCauses: 'Whether there are more causes than listed.',
  },
})
export type ConditionsDecided = EventOf<typeof conditionsDecided>

export interface DesiredPublishedData {
  readonly version: number
  readonly digest: string
  readonly statusDigest: string
  readonly upserted: number
  readonly removed: number
  readonly keys?: readonly string[]
  readonly foldVersion: string
  readonly recordedSince?: number
}

export const desiredPublished = defineEvent<DesiredPublishedData>()({
  name: 'DesiredPublished',
  type: 'dev.sluice.desired.published.v1',
  version: 1,
  about:
    'A new desired state was published. This is an output: replay compares its result with it.',
  fields: {
    version: 'Position of the last event that the state contains.',
    digest: 'Digest of the whole desired state.',
    statusDigest: 'Digest of all decided conditions.',
    upserted: 'Number of wire resources that are new or changed.',
    removed: 'Number of wire resources that were removed.',
    keys: 'Keys of these resources; omitted if there are many. Replay always lists them.',
    foldVersion: 'Version of the fold; digests of different versions cannot be compared.',
    recordedSince:
      'Position after which every change of a status is in a decision of this fold version, up to `version`.',
  },
})
export type DesiredPublished = EventOf<typeof desiredPublished>
