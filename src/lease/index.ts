export { KubernetesLease, type KubernetesLeaseOptions } from './kubernetes.ts'
export type { Lease, LeaseEvents, LeaseOptions } from './lease.ts'
export { type NatsLeaseOptions, openNatsLease } from './nats.ts'
export { Presence, type PresenceOptions } from './presence.ts'
