import type { ResourceEvent } from '../../../../events/index.ts'
import type { KubeClient } from '../../kube/index.ts'
import type { ObserveOptions } from '../observed.ts'
import type { KindState } from './kind-watch.ts'
import type { WatchedKind } from './kinds.ts'
import type { ScopeOptions } from './scope.ts'

export interface KubernetesSourceOptions extends ObserveOptions, ScopeOptions {
  readonly client: KubeClient
  /** Whether InferencePools are read, and the Pods that they select. */
  readonly readsPools: boolean
  /** Called with events to append, in order and all or none. Resolves once they are in the log. */
  onChange(events: readonly ResourceEvent[]): Promise<void>
  /** Called when the state of the watch of a kind changes. */
  onState(kind: WatchedKind, state: KindState): void
  onProblem(message: string): void
  /** Called when an object whose status this controller writes was observed or removed. */
  onLive(key: string): void
  /** Called with the Gateway API versions of the cluster's CRDs, sorted and without duplicates. */
  onVersions(versions: readonly string[]): void
}
