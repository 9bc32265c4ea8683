/** Workloads: the kinds of deployed objects that run pods. */
import type { WorkloadKind } from '../desired/deployment/render.ts'
import type { KubeObject } from '../kube/index.ts'

interface WorkloadSpec {
  readonly replicas?: number
}

interface WorkloadStatus {
  readonly observedGeneration?: number
  readonly availableReplicas?: number
  readonly desiredNumberScheduled?: number
  readonly numberAvailable?: number
}

type Counts = (spec: WorkloadSpec, status: WorkloadStatus) => readonly [number, number | undefined]

/** By kind: returns the number of available pods, and of wanted pods if it is known. */
const counts: Readonly<Record<WorkloadKind, Counts>> = {
  Deployment: ({ replicas = 1 }, { availableReplicas = 0 }) => [availableReplicas, replicas],
  DaemonSet: (_, { numberAvailable = 0, desiredNumberScheduled }) => [
    numberAvailable,
    // The number is 0 before the first pods are scheduled, and if no node matches.
    desiredNumberScheduled || undefined,
  ],
}

export const isWorkload = (kind: string): kind is WorkloadKind => Object.hasOwn(counts, kind)

/** Returns whether the status of a workload says that all its wanted pods are available. */
export function isAvailable(kind: WorkloadKind, object: KubeObject | undefined): boolean {
  const { observedGeneration, ...status } = (object?.status ?? {}) as WorkloadStatus
  if (object === undefined || observedGeneration !== object.metadata.generation) return false
  const [available, wanted] = counts[kind]((object.spec ?? {}) as WorkloadSpec, status)
  return wanted !== undefined && available >= wanted
}
