/** What the page says when a process or a file fails it, what it keeps, and how it goes on. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { snapshotLines } from '../../src/control/log/export.ts'
import { ExportLines } from '../../src/control/log/export-lines.ts'
import type { Position } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { foldEvents, foldVersion } from '../../src/past/replay/index.ts'
import { type RunningGateway, startGateway } from '../support/gateway.ts'
import { gateway as edge, httpRoute, manifest } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'
import { type ConsolePage, exampleLog } from './browser.ts'
import { type Relay, startRelay } from './relay.ts'
import { eventually, startConsole } from './support.ts'

/** The URL that the process has printed since it was started. */
const nextUrl = (gateway: RunningGateway) =>
  waitFor('the URL of the console', () => /^console: (http:\S+)$/m.exec(gateway.stderr)?.[1])

describeWithParts(['chromium'], 'the console of a process that goes away', () => {
  let running: RunningGateway
  let relay: Relay
  let console: ConsolePage
  beforeAll(async () => {
    const files = { 'gateway.yaml': manifest(edge(0), httpRoute('first', {})) }
    running = await startGateway({ manifests: files, args: ['--console-address', '127.0.0.1:0'] })
    const url = new URL(await nextUrl(running))
    relay = await startRelay(Number(url.port))
    url.port = `${relay.port}`
    console = await startConsole(url.href)
    await console.page.locator('.time-bar .source', { hasText: 'live' }).waitFor()
  })
  afterAll(async () => {
    await console?.close()
    await relay?.close()
    await running?.dispose()
  })
  const notices = () => console.page.locator('.notices').textContent()
  const list = () => console.page.locator('.virtual-list').textContent()

  it('says that the process does not answer, keeps what it has, and follows when it is back', async () => {
    await console.show('#/objects?kind=HTTPRoute')
    await eventually(list).toContain('default/first')
    await relay.goAway()
    await eventually(notices).toContain('The process that serves this page does not answer.')
    expect(await list()).toContain('default/first')
    running.write('second.yaml', manifest(httpRoute('second', {})))
    await relay.comeBack()
    await eventually(list).toContain('default/second')
    expect(await notices()).toBe('')
  })

  it('says that the process answers slowly, keeps what it has, and goes on with the answer', async () => {
    await relay.goAway()
    const passOn = await relay.comeBackSlowly()
    await eventually(notices).toContain('The process that serves this page answers slowly.')
    expect(await list()).toContain('default/second')
    running.write('slow.yaml', manifest(httpRoute('slow', {})))
    passOn()
    await eventually(list).toContain('default/slow')
    await eventually(notices).toBe('')
  })

  it('notices that the process is suspended while nothing happens, and follows when it goes on', async () => {
    const pid = running.pid ?? 0
    process.kill(pid, 'SIGSTOP')
    try {
      await eventually(notices).toContain('The process that serves this page does not answer.')
      expect(await list()).toContain('default/slow')
      running.write('suspended.yaml', manifest(httpRoute('suspended', {})))
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    await eventually(list).toContain('default/suspended')
    await eventually(notices).toBe('')
  })

  it('asks for the new URL after a restart, and follows as soon as any tab has opened it', async () => {
    await relay.goAway()
    await running.stop()
    await running.start()
    const url = new URL(await nextUrl(running))
    const restarted = await startRelay(Number(url.port), relay.port)
    try {
      await eventually(notices).toContain('Open the console URL that it printed last')
      expect(await list()).toContain('default/second')
      running.write('third.yaml', manifest(httpRoute('third', {})))
      const other = await console.page.context().newPage()
      url.port = `${relay.port}`
      await other.goto(url.href)
      await eventually(list).toContain('default/third')
      expect(await notices()).toBe('')
    } finally {
      await restarted.close()
    }
  })
})

describeWithParts(['chromium'], 'the console of a faulty export', () => {
  let console: ConsolePage
  beforeAll(async () => {
    console = await startConsole()
  })
  afterAll(() => console?.close())
  const notices = () => console.page.locator('.notices').textContent()
  const moment = () => console.page.locator('.moment').textContent()
  const lines = exampleLog('quickstart').trimEnd().split('\n')

  it('names a line whose end is damaged, and shows the events before it', async () => {
    const damaged = lines.with(11, `${lines[11]?.slice(0, -20)}`)
    await console.openLog('damaged.jsonl', damaged.join('\n'))
    await eventually(notices).toContain('damaged.jsonl:12 is not an event of a log: it is not JSON')
    expect(await moment()).toContain('of 11')
    await console.show('#/objects')
    await eventually(() => console.page.locator('.row').count()).toBeGreaterThan(2)
  })

  it('says how many events a log lacks, and at which position it begins', async () => {
    await console.openLog('gap.jsonl', [...lines.slice(4, 9), ...lines.slice(12)].join('\n'))
    await eventually(notices).toContain('The log begins at position 5')
    expect(await notices()).toContain('The log lacks 3 events between others.')
    expect(await moment()).toContain(`of ${lines.length - 7}`)
  })

  it('says that a log was written with another fold version', async () => {
    const other = lines.map((line) => line.replaceAll(/"foldVersion":"\d+"/g, '"foldVersion":"4"'))
    await console.openLog('older.jsonl', other.join('\n'))
    await eventually(notices).toContain('The log was written with fold version 4; this page has')
    expect(await moment()).toContain(`of ${lines.length}`)
  })

  it('begins at a stored state if earlier events are gone, and says so', async () => {
    await console.openLog('purged.jsonl', (await exportFrom(11)).join('\n'))
    await eventually(notices).toBe(
      'The log begins at position 11: states begin with the one that was stored at 10.',
    )
    await console.show('#/')
    const gateway = console.page.locator('.gateway', { hasText: 'Gateway default/quickstart' })
    await gateway.waitFor()
    await console.openLog('older-state.jsonl', (await exportFrom(11, '4')).join('\n'))
    await eventually(notices).toContain(
      'The state at 10 was stored by fold version 4; this page has',
    )
  })

  it('does not use stored states of another fold version, or damaged ones, and says so', async () => {
    await console.openLog('other.jsonl', (await exportFrom(1, '4')).join('\n'))
    await eventually(notices).toContain(
      `The stored states are of fold version 4; this page has ${foldVersion} and computes all states from the first event.`,
    )
    const damaged = (await exportFrom(11)).join('\n').replace(/"gzip":"....../, '"gzip":"AAAAAA')
    await console.openLog('damaged-state.jsonl', damaged)
    await eventually(notices).toContain('The stored state at position 10 cannot be used')
    expect(await notices()).toContain('objects that have not changed since are missing')
  })

  /** The events from a position on, with the state after event 10. */
  async function exportFrom(first: number, writer = foldVersion): Promise<string[]> {
    const log = new ExportLines('quickstart')
    const events = lines.flatMap((line) => log.read(line) ?? [])
    const fold = await foldEvents(events.slice(0, 10), { checkRegex: regexProblem })
    const chunk = Buffer.from(JSON.stringify({ fold: fold.snapshot() }))
    const position = 10 as Position
    const state = await snapshotLines({ position, foldVersion: writer, chunks: [chunk] })
    return [...lines.slice(first - 1, 10), ...state.map((line) => line.trim()), ...lines.slice(10)]
  }

  it('says nothing any more once a whole log is opened', async () => {
    await console.openLog('quickstart.jsonl', lines.join('\n'))
    await eventually(notices).toBe('')
    expect(await moment()).toContain(`of ${lines.length}`)
  })
})
