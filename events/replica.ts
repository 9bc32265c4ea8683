import { defineEvent, type EventOf } from './envelope.ts'

export interface LeaseData {
  readonly holder: string
  readonly epoch: number
}

export const leaseAcquired = defineEvent<LeaseData>()({
  name: 'LeaseAcquired',
  type: 'dev.sluice.lease.acquired.v1',
  version: 1,
  about: 'A replica holds the lease; the fold ignores writers of a lower epoch from here on.',
  fields: {
    holder: 'Name of the replica.',
    epoch: 'Rises with every change of the holder.',
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
