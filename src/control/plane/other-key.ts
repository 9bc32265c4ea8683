import type { LeaseAcquiredData } from '../../../events/index.ts'
import type { ControlPlaneOptions } from './parts.ts'

/** Warns if another replica uses a different digest key: Secrets that it records cannot be served here. */
export function warnOfOtherKey(
  { holder, keyName }: LeaseAcquiredData,
  { log, notify }: Pick<ControlPlaneOptions, 'log' | 'notify'>,
): void {
  if (keyName === undefined || keyName === log.digestKey.name) return
  const what = `Replica ${holder} uses a different secret-digest key; its Secrets cannot be served here.`
  notify('warn', `${what} Give all replicas the same file (SLUICE_DIGEST_KEY_FILE).`)
}
