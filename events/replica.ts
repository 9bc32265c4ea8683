import { defineEvent, type EventOf } from './envelope.ts'

export interface LeaseData {
  readonly holder: string
  readonly epoch: number
}

export interface LeaseAcquiredData extends LeaseData {
  readonly keyName?: string
}

export const leaseAcquired = defineEvent<LeaseAcquiredData>()({
  name: 'LeaseAcquired',
  type: 'dev.sluice.lease.acquired.v1',
  version: 1,
  about:
    'A replica acquired the lease. From this event on, the fold ignores writers with a lower epoch.',
  fields: {
    holder: 'Name of the replica.',
    epoch: 'Number that increases with every change of the holder.',
    keyName:
      "Identifies the holder's key of secret digests without revealing it; omitted if all replicas share one key automatically.",
  },
})
export type LeaseAcquired = EventOf<typeof leaseAcquired>

export const leaseLost = defineEvent<LeaseData>()({
  name: 'LeaseLost',
  type: 'dev.sluice.lease.lost.v1',
  version: 1,
  about: 'A replica no longer holds the lease.',
  fields: {
    holder: 'Name of the replica.',
    epoch: 'The epoch that ended.',
  },
})
export type LeaseLost = EventOf<typeof leaseLost>

export interface DigestTakenData {
  readonly replica: string
  readonly position: number
  readonly desired: string
  readonly status: string
  readonly foldVersion: string
}

export const digestTaken = defineEvent<DigestTakenData>()({
  name: 'DigestTaken',
  type: 'dev.sluice.digest.taken.v1',
  version: 1,
  about:
    'A replica published the digests of its state at a position. The other replicas compare them with theirs.',
  fields: {
    replica: 'Name of the replica.',
    position: 'Position of the last event that the state contains.',
    desired: 'Digest of the whole desired state.',
    status: 'Digest of all decided conditions.',
    foldVersion: 'Version of the fold; digests of different versions cannot be compared.',
  },
})
export type DigestTaken = EventOf<typeof digestTaken>

export interface DigestsDifferedData extends DigestTakenData {
  readonly other: string
  readonly otherDesired: string
  readonly otherStatus: string
}

export const digestsDiffered = defineEvent<DigestsDifferedData>()({
  name: 'DigestsDiffered',
  type: 'dev.sluice.digest.differed.v1',
  version: 1,
  about:
    'Two replicas with the same fold version derived different states from the same log. This is a bug.',
  fields: {
    replica: 'Name of the replica that noticed.',
    position: 'Position at which the states differ.',
    desired: 'Its own digest of the desired state.',
    status: 'Its own digest of all conditions.',
    foldVersion: 'Version of both folds.',
    other: 'Name of the other replica.',
    otherDesired: 'The digest of the desired state that the other replica published.',
    otherStatus: 'The digest of all conditions that the other replica published.',
  },
})
export type DigestsDiffered = EventOf<typeof digestsDiffered>
