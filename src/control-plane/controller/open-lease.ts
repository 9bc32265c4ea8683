/** The lease by which the replicas of a controller settle which one writes. */
import { KubernetesLease, type Lease, type LeaseOptions } from '../../lease/index.ts'
import type { SessionOptions } from './session-options.ts'

const leaseName = 'sluice-controller'

/** A Lease object in the controller's namespace; changes of holder are counted. */
export function openLease(
  { client, namespace, owners, settings, metrics, say }: SessionOptions,
  options: Omit<LeaseOptions, 'durationMs' | 'onProblem'>,
): Lease {
  return new KubernetesLease({
    ...options,
    client,
    namespace,
    name: leaseName,
    owner: owners.local,
    durationMs: settings.leaseDurationMs,
    onAcquired: (epoch) => {
      metrics.add('lease_changes_total', 1, 'acquired')
      options.onAcquired(epoch)
    },
    onLost: (reason) => {
      metrics.add('lease_changes_total', 1, 'lost')
      options.onLost(reason)
    },
    onProblem: (text) => say('warn', text),
  })
}
