export { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
export { KubernetesLease } from './kubernetes.ts'
export type { Lease, LeaseOptions } from './lease.ts'
export { openNatsLease } from './nats.ts'
