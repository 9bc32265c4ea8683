export { KubernetesLease } from './kubernetes.ts'
export type { Lease, LeaseOptions } from './lease.ts'
export { openNatsLease } from './nats.ts'
export { Presence, type PresenceOptions } from './presence.ts'
