/** A log with stored states: moments far from its beginning are those that the commands show. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Request } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { changeLog } from '../../bench/change-log.ts'
import { ConsoleProcess } from '../support/console-process.ts'
import { allConditions, sluice } from '../support/gateway.ts'
import { describeWithParts } from '../support/parts.ts'
import type { ConsolePage } from './browser.ts'
import { eventually, startConsole } from './support.ts'

/** Events, of which most are about a few routes. States are stored about every 10,000 events. */
const [size, routes] = [25_000, 30]
const isRoute = ({ kind }: { readonly kind: string }) => kind === 'HTTPRoute'

type Statuses = Parameters<typeof allConditions>[0][]

describeWithParts(['chromium'], 'the console of a long log', () => {
  let file: string
  let console: ConsolePage
  let served: ConsoleProcess
  const folder = mkdtempSync(join(tmpdir(), 'sluice-long-log-'))
  const requests: URL[] = []
  beforeAll(async () => {
    file = await changeLog(size, routes, () => undefined)
  }, 120_000)
  afterAll(async () => {
    await console?.close()
    await served?.dispose()
    rmSync(folder, { recursive: true })
  })

  /** Compares what the page shows of a moment with `sluice status --at`. */
  async function expectMoment(position: number): Promise<void> {
    const { stdout } = await sluice(
      'status',
      '--log-file',
      file,
      '--at',
      `${position}`,
      '-o',
      'json',
    )
    const { objects } = JSON.parse(stdout)
    const decided: { name: string; status: Statuses[number] }[] = objects.filter(isRoute)
    const broken = decided.filter(({ status }) =>
      allConditions(status).some((one) => one.type === 'ResolvedRefs' && one.status === 'False'),
    )
    await console.show(`#/objects@${position}?kind=HTTPRoute&health=bad`)
    const count = () => console.page.locator('.filters output').textContent()
    await eventually(count).toContain(`${broken.length} of `)
    for (const name of ['route-7', 'route-12']) {
      await console.show(`#/object/HTTPRoute/default/${name}@${position}`)
      const wanted = allConditions(decided.find((one) => one.name === name)?.status)
      const shown = () => console.page.locator('table.conditions tbody tr').allTextContents()
      const texts = wanted.map(({ type, status, reason }) => `${type}=${status}${reason}`)
      await eventually(async () => (await shown()).length).toBe(texts.length)
      const rows = (await shown()).map((text) => text.replaceAll(' ', ''))
      for (const text of texts) expect(rows.join('\n')).toContain(text)
    }
  }

  it('shows any moment of an export with snapshots', async () => {
    const path = join(folder, 'long.jsonl')
    const args = ['log', '--log-file', file, '-o', 'json', '--snapshots']
    writeFileSync(path, (await sluice(...args)).stdout)
    console = await startConsole()
    await console.page.setInputFiles('input[type=file]', path)
    await console.page.locator('.time-bar .source', { hasText: 'long.jsonl' }).waitFor()
    for (const position of [24_900, 10_500, 21_000, 700]) await expectMoment(position)
    await console.close()
  })

  it('shows any moment of a served log, of which it reads only a part', async () => {
    served = new ConsoleProcess('--log-file', file)
    console = await startConsole((await served.url()).href)
    console.page.on('request', (request: Request) => requests.push(new URL(request.url())))
    await console.page.reload()
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
    await expectMoment(24_900)
    const read = requests.flatMap(({ pathname, searchParams }) =>
      pathname === '/api/events' && searchParams.has('from')
        ? [Number(searchParams.get('to') ?? size) - Number(searchParams.get('from')) + 1]
        : [],
    )
    expect(read.reduce((sum, count) => sum + count, 0)).toBeLessThan(size / 2)
    for (const position of [12_345, 24_950, 300]) await expectMoment(position)
  })

  it('names the events that caused conditions, from the decisions in the log', async () => {
    let named = 0
    for (const name of ['route-1', 'route-2', 'route-100', 'route-400']) {
      const args = ['explain', 'condition', `HTTPRoute/default/${name}`, '--log-file', file]
      const { changes } = JSON.parse((await sluice(...args, '-o', 'json')).stdout)
      const last = changes.findLast(({ type }: { type: string }) => type === 'ResolvedRefs')
      await console.show(`#/object/HTTPRoute/default/${name}`)
      const row = console.page.locator('table.conditions tr', { hasText: 'ResolvedRefs' })
      await console.page.getByRole('heading', { name: `HTTPRoute default/${name}` }).waitFor()
      await console.page.locator('main .content[aria-busy=false]').first().waitFor()
      const shown = await row.locator('a.event').allTextContents()
      if (shown.length > 0) expect(shown).toContain(`event ${last.position}`)
      named += shown.length
    }
    expect(named).toBeGreaterThan(0)
  })

  it('lists all events, and fetches the rows that are looked at', async () => {
    await console.show('#/timeline?text=route-7')
    const output = () => console.page.locator('.filters output').textContent()
    const { stdout } = await sluice('log', '--log-file', file, '-o', 'json')
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const about = events.filter(({ event: { data } }) => /^route-7\d*$/.test(data.name))
    await eventually(output).toBe(`${about.length} of ${events.length}`)
    const rows = console.page.locator('.virtual-list [role=row]')
    await eventually(() => rows.last().textContent()).toContain('default/route-7')
  })
})
