/**
 * Claim: requests cost a gateway at most 2 % more CPU while a page of its console is open, which follows the
 * event log and shows rates. Two gateways that differ only in the page are measured in turn.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BenchContext, pinSelf, type Row } from '../harness.ts'
import { check } from '../proxy/cost.ts'
import { scenarios, startBenchUpstream } from '../proxy/load.ts'
import { loadCore, type MeasuredProxy } from '../proxy/process.ts'
import { slicedCosts } from '../proxy/slices.ts'
import { startSluice } from '../proxy/sluice.ts'
import { type BenchPage, openPage } from './browser.ts'

const routes = 100

async function openConsole(proxy: MeasuredProxy): Promise<BenchPage> {
  const [, url] = /^console: (http:\S+)$/m.exec(proxy.stderr()) ?? []
  if (url === undefined) throw new Error(`${proxy.name} printed no URL:\n${proxy.stderr()}`)
  const opened = await openPage(url)
  await opened.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
  await opened.page.getByRole('region', { name: 'Traffic now' }).waitFor()
  return opened
}

export default async function dataPath({ rounds, quick, note }: BenchContext): Promise<Row[]> {
  if (!pinSelf(loadCore)) note('nothing is pinned: taskset is missing, or there is one core only')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const upstream = await startBenchUpstream()
  const running: MeasuredProxy[] = []
  let opened: BenchPage | undefined
  try {
    for (const name of ['open', 'closed']) {
      const own = join(folder, name)
      mkdirSync(own)
      running.push(await startSluice(own, upstream.port, routes))
    }
    for (const proxy of running) await check(proxy)
    const [measured] = running
    if (measured !== undefined) opened = await openConsole(measured)
    const [open = [], closed = []] = await slicedCosts(running, {
      scenario: scenarios.get,
      rounds,
      seconds: quick ? 0.6 : 1.5,
      warmUpSeconds: quick ? 2 : 5,
    })
    return [
      {
        id: 'console.data-path',
        unit: 'µs',
        own: open,
        peer: { name: 'closed', samples: closed },
        bound: { atMost: 1.02 },
      },
    ]
  } finally {
    await opened?.close()
    for (const proxy of running) await proxy.stop()
    upstream.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
