/**
 * The page with a long export: 200,000 events of 5,000 routes (207 MB) and the stored states. Claims: the slider
 * is ready within 5 s, each further moment shows within 100 ms, also before all states are computed, and no task of the page takes longer than 100 ms while a list of
 * 5,000 routes is scrolled and filtered. These are times of a clock, so that they hold only on a quiet machine.
 */
import { once } from 'node:events'
import { createWriteStream, existsSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { foldVersion } from '../../src/control/actors/fold.ts'
import { exportLog } from '../../src/tools/cli/log/log.ts'
import { changeLog } from '../change-log.ts'
import type { BenchContext, Row } from '../harness.ts'
import { type BenchPage, openPage } from './browser.ts'
import { moveTo } from './move-to.ts'

/** Returns the path of an export of the log, which is written only once. */
async function exportOf(
  size: number,
  routes: number,
  note: (text: string) => void,
): Promise<string> {
  const path = join(tmpdir(), 'sluice-bench-logs', `${size}-${routes}-${foldVersion}-states.jsonl`)
  if (existsSync(path)) return path
  const log = await changeLog(size, routes, note)
  const file = createWriteStream(`${path}.${process.pid}`)
  const output = {
    print: (line: string) => void file.write(`${line}\n`),
    report: note,
    ready: async () => {
      if (file.writableNeedDrain) await once(file, 'drain')
      return true
    },
  }
  const options = { logFile: log, at: `${size}`, snapshots: true }
  if ((await exportLog(options, output)) !== 0) throw new Error(`${log} cannot be exported`)
  file.end()
  await once(file, 'finish')
  renameSync(`${path}.${process.pid}`, path)
  return path
}

interface Opened {
  /** Milliseconds until every event is listed, from then until a late moment shows, and until all states are computed. */
  readonly listed: number
  readonly late: number
  readonly folded: number
  /** CPU time of the worker until then. */
  readonly workerMs: number
}

async function open({ page, threadMs }: BenchPage, path: string, late: number): Promise<Opened> {
  const isOver = (what: RegExp) =>
    page
      .locator('.time-bar .source', { hasText: what })
      .waitFor({ state: 'detached', timeout: 600_000 })
  const begun = performance.now()
  await page.setInputFiles('input[type=file]', path)
  await page.locator('.time-bar .source').waitFor({ timeout: 60_000 })
  await isOver(/reading/)
  const listed = performance.now() - begun
  const lateMs = await moveTo(page, `#/@${late}`)
  await isOver(/computing/)
  const folded = performance.now() - begun
  return { listed, late: lateMs, folded, workerMs: await threadMs('DedicatedWorker') }
}

/** Milliseconds of the longest task of the page's main thread during some work; 0 if none took over 50 ms. */
async function longestTask(page: Page, work: () => Promise<void>): Promise<number> {
  await page.evaluate(`{
    globalThis.tasks = []
    globalThis.observer = new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) tasks.push(duration)
    })
    observer.observe({ type: 'longtask' })
  }`)
  await work()
  return page.evaluate<number>(`new Promise((resolve) => setTimeout(() => {
    observer.disconnect()
    resolve(Math.max(0, ...tasks))
  }, 200))`)
}

async function browse(page: Page, hash: string, text: string): Promise<void> {
  await moveTo(page, hash)
  await page.evaluate(`new Promise((resolve) => {
    const list = document.querySelector('.virtual-list')
    const height = list.scrollHeight
    let step = 0
    const scroll = () => {
      list.scrollTop = (height * ++step) / 60
      if (step < 60) requestAnimationFrame(scroll)
      else resolve()
    }
    scroll()
  })`)
  const field = page.getByLabel('Text')
  await field.pressSequentially(text)
  await page.locator('main .content[aria-busy=false]').waitFor()
  await field.fill('')
  await page.locator('main .content[aria-busy=false]').waitFor()
}

export default async function longExport({ quick, rounds, note }: BenchContext): Promise<Row[]> {
  const [size, routes] = quick ? [20_000, 1_000] : [200_000, 5_000]
  const path = await exportOf(size, routes, note)
  const opened: Opened[] = []
  const moments: number[] = []
  const topologies: number[] = []
  const tasks: number[] = []
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    const console = await openPage()
    try {
      opened.push(await open(console, path, Math.round(size * 0.97)))
      for (let n = 1; n <= 20; n++) {
        const position = 1 + ((n * 479_001_599) % size)
        moments.push(await moveTo(console.page, `#/objects@${position}`))
        moments.push(await moveTo(console.page, `#/@${position + 1}`))
        topologies.push(await moveTo(console.page, `#/topology@${position}`))
      }
      for (const [hash, text] of [
        ['#/objects?kind=HTTPRoute', 'route-49'],
        ['#/timeline', 'route-49'],
      ] as const) {
        tasks.push(await longestTask(console.page, () => browse(console.page, hash, text)))
      }
    } finally {
      await console.close()
    }
  }
  return [
    {
      id: 'console.export.slider',
      unit: 'ms',
      own: opened.map(({ listed }) => listed),
      bound: { atMost: 5_000 },
      note: `${size} events, ${routes} routes`,
    },
    {
      id: 'console.export.late-moment',
      unit: 'ms',
      own: opened.map(({ late }) => late),
      bound: { atMost: 100 },
    },
    { id: 'console.export.all-moments', unit: 'ms', own: opened.map(({ folded }) => folded) },
    { id: 'console.export.worker', unit: 'ms', own: opened.map(({ workerMs }) => workerMs) },
    { id: 'console.export.moment', unit: 'ms', own: moments, bound: { atMost: 100 } },
    { id: 'console.export.topology', unit: 'ms', own: topologies, bound: { atMost: 100 } },
    { id: 'console.long-task', unit: 'ms', own: tasks, bound: { atMost: 100 } },
  ]
}
