/** What the commands share by which operators change the configuration in force. */
import { userInfo } from 'node:os'
import { setTimeout as after } from 'node:timers/promises'
import type { Fold } from '../../../past/replay/index.ts'
import { UsageError } from '../shared/output.ts'
import type { LogPlace } from './change-log.ts'

export interface OperatorChange extends LogPlace {
  readonly reason?: string
  readonly author?: string
}

/** How long a command waits for gateways to have a change in force. */
const timeoutMs = 5_000
const pollMs = 50

/** The author of a change without `--author`: the user of this process. */
export const defaultAuthor = (): string => userInfo().username

/** @throws UsageError */
export function signed({ reason, author = defaultAuthor() }: OperatorChange) {
  if (reason === undefined) {
    throw new UsageError('--reason is required; it is shown in the log and in conditions')
  }
  return { reason, author }
}

/** Waits until all gateways that are connected have the state in force. Returns what became of it. */
export async function waitForGateways(fold: Fold, readOn: () => Promise<void>): Promise<string> {
  await readOn()
  const position = fold.position
  for (const end = performance.now() + timeoutMs; ; ) {
    const proxies = fold.proxies()
    const served = proxies.filter(({ watermark }) => watermark >= position).length
    const what = `${served} of ${proxies.length} proxies`
    if (proxies.length === 0) return 'no proxy is connected; it takes effect when a gateway starts'
    if (served === proxies.length) return `in force at ${what}`
    if (performance.now() > end) return `in force at ${what} so far`
    await after(pollMs)
    await readOn()
  }
}
