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
  about: 'A replica holds the lease; the fold ignores writers of a lower epoch from here on.',
  fields: {
    holder: 'Name of the replica.',
    epoch: 'Rises with every change of the holder.',
    keyName:
      "Tells the holder's key of secret digests from other keys, and nothing else; absent where replicas share one by themselves.",
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
    epoch: 'The epoch that has ended.',
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
  about: 'A replica tells the digests of its state at a position, for the others to compare.',
  fields: {
    replica: 'Name of the replica.',
    position: 'Position of the last event that the state contains.',
    desired: 'Digest of the whole desired state.',
    status: 'Digest of all decided conditions.',
    foldVersion: 'Version of the fold; digests compare only within one.',
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
  about: 'Two replicas of one fold version have made different states of the same log: a bug.',
  fields: {
    replica: 'Name of the replica that noticed.',
    position: 'Position at which the states differ.',
    desired: 'Its own digest of the desired state.',
    status: 'Its own digest of all conditions.',
    foldVersion: 'Version of both folds.',
    other: 'Name of the other replica.',
    otherDesired: 'The digest of the desired state that the other one told.',
    otherStatus: 'The digest of all conditions that the other one told.',
  },
})
export type DigestsDiffered = EventOf<typeof digestsDiffered>
