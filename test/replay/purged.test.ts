import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readExport } from '../../src/control/log/export.ts'
import { type EventLog, openEmbeddedLog, type Position } from '../../src/control/log/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { captureState, restoreState } from '../../src/control/plane/stored-state.ts'
import { sluice } from '../support/gateway.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'

const example = join(import.meta.dirname, '..', '..', 'examples', 'quickstart', 'recorded.jsonl')
const route = 'HTTPRoute/default/echo'

/** Fills a log with the example; stores the state at a position if one is given. */
async function fill(log: EventLog, storedAt?: number): Promise<void> {
  const events = (await Array.fromAsync(readExport(example))).map(({ event }) => event)
  await log.append(events)
  if (storedAt === undefined) return
  const { fold, index } = await restoreState(log, '/sluice/files')
  for await (const recorded of log.read({ to: storedAt as Position })) {
    index.apply(recorded.event)
    fold.apply(recorded)
  }
  await log.saveSnapshot(await captureState(fold, index))
  await log.purgeUpTo(storedAt as Position)
}

describe('a log whose beginning was purged after a state was stored', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-purged-'))
  const purged = join(folder, 'purged.db')
  const whole = join(folder, 'whole.db')
  beforeAll(async () => {
    for (const [path, storedAt] of [[purged, 15] as const, [whole, undefined] as const]) {
      const { log } = openEmbeddedLog(path)
      await fill(log, storedAt)
      await log.close()
    }
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('gives the same state as the whole log, and reports where it begins', async () => {
    const [one, other] = await Promise.all(
      [purged, whole].map((path) => sluice('status', '--log-file', path, '-o', 'json')),
    )
    const [after, before] = [one, other].map((result) => JSON.parse(result?.stdout ?? ''))
    expect(after).toEqual({ ...before, history: { state: 'stored', first: 16 } })
    expect(before.history).toEqual({ state: 'whole', first: 1 })
    expect(one?.stderr).toMatch(
      /begins at position 16: earlier events were purged; starting from the state stored at position 15/,
    )
    expect(other?.stderr).toMatch(/^no gateway runs with this log: .*\n$/)
  })

  it('gives the same state from an export with snapshots, and only a part from one without', async () => {
    const exportOf = async (...args: string[]) => {
      const { stdout } = await sluice('log', '--log-file', purged, '-o', 'json', ...args)
      const path = join(folder, `purged${args}.jsonl`)
      writeFileSync(path, stdout)
      return path
    }
    const stateOf = async (path: string, ...args: string[]) => {
      const { stdout } = await sluice('status', '--log-file', path, '-o', 'json', ...args)
      return JSON.parse(stdout)
    }
    const withSnapshots = await exportOf('--snapshots')
    expect(await stateOf(withSnapshots)).toEqual(await stateOf(purged))
    expect(await stateOf(withSnapshots, '--at', '20')).toEqual(await stateOf(purged, '--at', '20'))
    expect((await sluice('diff', withSnapshots, whole)).code).toBe(0)
    const { history } = await stateOf(await exportOf())
    expect(history).toEqual({ state: 'partial', first: 16 })
  })

  it('has no difference to the whole log, and works with explain and bisect', async () => {
    const compared = await sluice('diff', purged, whole)
    expect(compared).toMatchObject({ code: 0, stdout: '' })
    expect(compared.stderr).toContain(`${purged}: the log begins at position 16`)
    const explained = await sluice('explain', 'HTTPRoute', 'default/echo', '--log-file', purged)
    expect(explained).toMatchObject({ code: 0, stderr: expect.stringContaining('position 16') })
    expect(explained.stdout).toMatch(/Accepted +True/)
    const held = ['bisect', '--expect', `${route} Accepted=True`, '--log-file', purged]
    expect(await sluice(...held)).toMatchObject({ code: 0 })
  })

  it('is replayed from the stored state, and compared with the digests after it', async () => {
    const { code, stdout } = await sluice('replay', '--log-file', purged, '-o', 'json')
    const summary = JSON.parse(stdout)
    expect(summary).toMatchObject({ missing: 0, from: 15, different: [] })
    expect(summary.published - summary.incomparable).toBeGreaterThan(0)
    expect(code).toBe(0)
  })
})

describeWithParts(['nats-server'], 'a NATS stream whose events were purged externally', () => {
  let server: NatsServer
  beforeAll(async () => {
    server = await startNatsServer()
    const log = await openNatsLog({ servers: server.url })
    await fill(log)
    await log.close()
  })
  afterAll(() => server?.remove())

  const purge = async (options?: { seq: number }) => {
    const connection = await connect({ servers: server.url })
    await (await jetstreamManager(connection)).streams.purge('SLUICE_EVENTS', options)
    await connection.close()
  }

  it('is reported with what is missing and what a controller will do', async () => {
    await purge({ seq: 10 })
    for (const command of [['status'], ['explain', 'HTTPRoute', 'default/echo'], ['replay']]) {
      const { stdout, stderr } = await sluice(...command, '--nats', server.url)
      const text = `${stdout}${stderr}`
      expect(text).toMatch(/events were removed externally, and no state is stored/)
      expect(text).toMatch(/missing here; a controller or gateway lists everything again/)
    }
  })

  it('is reported as emptied if no event is left', async () => {
    await purge()
    const { stdout, stderr } = await sluice('status', '--nats', server.url, '-o', 'json')
    expect(stderr).toContain('the log was emptied')
    expect(JSON.parse(stdout)).toMatchObject({ objects: [], history: { state: 'partial' } })
  })
})
