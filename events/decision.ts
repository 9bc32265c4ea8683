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
  about: 'The status of an object was decided. An output: the fold never reads it.',
  fields: {
    kind: 'Kubernetes kind.',
    namespace: 'Namespace; empty for cluster-scoped kinds.',
    name: 'Name.',
    generation: 'Generation of the object that the status is about.',
    status: 'The part of the status that is ours, complete; empty if the object has none any more.',
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
  about: 'A new desired state was published. An output: replay compares itself with it.',
  fields: {
    version: 'Position of the last event that it contains.',
    digest: 'Digest of the whole desired state.',
    statusDigest: 'Digest of all decided conditions.',
    upserted: 'Number of wire resources that are new or changed.',
    removed: 'Number of wire resources that are gone.',
    keys: 'Their keys, where they are few; replay gives them in any case.',
    foldVersion: 'Version of the fold; digests compare only within one.',
    recordedSince:
      'Position after which every change of a status is in a decision of this fold version, up to `version`.',
  },
})
export type DesiredPublished = EventOf<typeof desiredPublished>
