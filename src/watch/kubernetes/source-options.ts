import type { ResourceEvent } from '../../../events/index.ts'
import type { Clock } from '../../base/clock.ts'
import type { KubeClient } from '../../kube/index.ts'
import type { ObserveOptions } from '../observed.ts'
import type { KindState } from './kind-watch.ts'
import type { WatchedKind } from './kinds.ts'
import type { ScopeOptions } from './scope.ts'

export interface KubernetesSourceOptions extends ObserveOptions, ScopeOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly cluster: string
  /** Are InferencePools read, and the Pods that they select? */
  readonly readsPools: boolean
  /** Takes events in order, to be appended all or none; resolves once they are in the log. */
  onChange(events: readonly ResourceEvent[]): Promise<void>
  /** A kind cannot be read, or can be again; told when it changes. */
  onState(kind: WatchedKind, state: KindState): void
  onProblem(message: string): void
  /** An object whose status is ours to write was seen, or is gone. */
  onLive(key: string): void
  /** Versions of the Gateway API that the cluster's definitions state, each once, sorted. */
  onVersions(versions: readonly string[]): void
}
