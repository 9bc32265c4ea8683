/** What a session of the controller is given. */
import type { KubeClient } from '../../kube/index.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import type { Health } from './health.ts'
import type { ControllerMetrics } from './metrics.ts'

export interface SessionOptions {
  readonly client: KubeClient
  readonly settings: ControllerSettings
  readonly namespace: string
  readonly replica: string
  readonly isInCluster: boolean
  readonly health: Health
  readonly metrics: ControllerMetrics
  readonly say: (severity: 'info' | 'warn' | 'error', text: string) => void
}
