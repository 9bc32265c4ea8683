/** Claim: the console of the quick start paints within a second in a browser that has never loaded it. */
import { join } from 'node:path'
import { root } from '../../test/hosts/files-server.ts'
import { ConsoleProcess } from '../../test/support/console-process.ts'
import type { BenchContext, Row } from '../harness.ts'
import { openPage } from './browser.ts'

const quickStart = join(root, 'examples', 'quickstart', 'recorded.jsonl')

export default async function paint({ rounds }: BenchContext): Promise<Row[]> {
  const paints: number[] = []
  const overviews: number[] = []
  for (let round = 0; round < rounds; round++) {
    const served = new ConsoleProcess(quickStart)
    const { page, close } = await openPage((await served.url()).href)
    try {
      await page.locator('main .gateway').first().waitFor()
      // Both times begin with the navigation.
      overviews.push(await page.evaluate(() => performance.now()))
      paints.push(
        await page.evaluate(
          () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Infinity,
        ),
      )
    } finally {
      await close()
      await served.dispose()
    }
  }
  return [
    { id: 'console.first-paint', unit: 'ms', own: paints, bound: { atMost: 1_000 } },
    { id: 'console.first-overview', unit: 'ms', own: overviews },
  ]
}
