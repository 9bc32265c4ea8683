/**
 * The page of `sluice console` for a long log: a million events of 5,000 routes. It begins at the newest stored
 * state instead of folding from the beginning; a moment in the middle begins at the nearest one.
 */
import { ConsoleProcess } from '../../test/support/console-process.ts'
import { changeLog } from '../change-log.ts'
import type { BenchContext, Row } from '../harness.ts'
import { openPage } from './browser.ts'
import { moveTo } from './move-to.ts'

export default async function servedLog({ quick, rounds, note }: BenchContext): Promise<Row[]> {
  const [size, routes] = quick ? [30_000, 500] : [1_000_000, 5_000]
  const file = await changeLog(size, routes, note)
  const newest: number[] = []
  const worker: number[] = []
  const moments: number[] = []
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    const served = new ConsoleProcess('--log-file', file)
    const begun = performance.now()
    const { page, threadMs, close } = await openPage((await served.url()).href)
    try {
      await page.locator('main .gateway').first().waitFor({ timeout: 600_000 })
      newest.push(performance.now() - begun)
      worker.push(await threadMs('DedicatedWorker'))
      moments.push(await moveTo(page, `#/@${Math.round(size / 2)}`))
    } finally {
      await close()
      await served.dispose()
    }
  }
  return [
    { id: 'console.served.newest', unit: 'ms', own: newest, note: `${size} events` },
    { id: 'console.served.worker', unit: 'ms', own: worker },
    { id: 'console.served.moment', unit: 'ms', own: moments, bound: { atMost: 100 } },
  ]
}
