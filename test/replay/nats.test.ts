import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readExport } from '../../src/control/log/export.ts'
import { openEmbeddedLog } from '../../src/control/log/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { exportLog } from '../../src/tools/cli/log/log.ts'
import { type RecordingOptions, readRecording } from '../../src/tools/cli/recording/recording.ts'
import { replayLog } from '../../src/tools/cli/replay/replay.ts'
import { type CommandResult, printResult } from '../../src/tools/cli/shared/output.ts'
import { status } from '../../src/tools/cli/status/status.ts'
import { type NatsServer, startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'

const example = join(import.meta.dirname, '..', '..', 'examples', 'quickstart', 'recorded.jsonl')

type Command = (options: RecordingOptions, report: () => void) => Promise<CommandResult>

/** What a command prints as JSON, before its exit code. */
async function printed(command: Command, options: RecordingOptions): Promise<string> {
  const lines: string[] = []
  const report = () => undefined
  const answer = await command(options, report)
  const code = printResult(answer, 'json', { print: (text) => void lines.push(text), report })
  return [...lines, `exit code ${code}`].join('\n')
}

/** The lines of an export. */
async function exported(options: RecordingOptions): Promise<string[]> {
  const lines: string[] = []
  const code = await exportLog(options, {
    print: (text) => void lines.push(text),
    report: () => undefined,
  })
  expect(code).toBe(0)
  return lines
}

describeWithParts(['nats-server'], 'a log on a NATS server and the same events in a file', () => {
  let server: NatsServer
  let folder: string
  let onServer: RecordingOptions
  let inFile: RecordingOptions
  beforeAll(async () => {
    server = await startNatsServer()
    folder = mkdtempSync(join(tmpdir(), 'sluice-replay-'))
    onServer = { nats: server.url }
    inFile = { logFile: join(folder, 'events.db') }
    const events = (await Array.fromAsync(readExport(example))).map(({ event }) => event)
    const logs = [
      openEmbeddedLog(inFile.logFile ?? '').log,
      await openNatsLog({ servers: server.url }),
    ]
    for (const log of logs) {
      await log.append(events)
      await log.close()
    }
  })
  afterAll(async () => {
    await server.remove()
    rmSync(folder, { recursive: true })
  })

  it('replay to the same digests, which are the published ones', async () => {
    const summary = await printed(replayLog, onServer)
    expect(summary).toBe(await printed(replayLog, inFile))
    expect(summary).toMatch(/exit code 0$/)
    expect(summary).toMatch(/"published": [1-9]/)
  })

  it('show the same conditions and the same events', async () => {
    expect(await printed(status, onServer)).toBe(await printed(status, inFile))
    expect(await exported(onServer)).toEqual(await exported(inFile))
  })

  it('replay to the same digests from an export of the server', async () => {
    const logFile = join(folder, 'export.jsonl')
    writeFileSync(logFile, `${(await exported(onServer)).join('\n')}\n`)
    expect(await printed(replayLog, { logFile })).toBe(await printed(replayLog, onServer))
  })

  it('are refused if both are named in one command', async () => {
    await expect(readRecording({ ...onServer, ...inFile }, () => undefined)).rejects.toThrow(
      '--nats',
    )
  })
})
