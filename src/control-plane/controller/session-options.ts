/** What a session of the controller is given. */
import type { InstallOwners, KubeClient } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import type { Health } from './health.ts'
import type { ControllerMetrics } from './metrics.ts'

export interface SessionOptions {
  readonly client: KubeClient
  readonly settings: ControllerSettings
  readonly namespace: string
  /** Of what the controller makes for itself. */
  readonly owners: InstallOwners
  readonly replica: string
  readonly isInCluster: boolean
  readonly version: string
  readonly health: Health
  readonly metrics: ControllerMetrics
  readonly say: (severity: 'debug' | 'info' | 'warn' | 'error', text: string) => void
}
