/** Reading a state without a running gateway: from manifests, or from a recorded log. */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { SluiceEvent } from '../../events/index.ts'
import { systemClock } from '../base/clock.ts'
import { readExport } from '../log/export.ts'
import { type EventLog, MemoryLog, openEmbeddedLog, type Recorded } from '../log/index.ts'
import { apiBinding, builtInObjects } from '../pipeline/api-binding.ts'
import { randomDigestKey } from '../watch/digest-key.ts'
import { FileSource } from '../watch/files.ts'
import { ResourceIndex } from '../watch/resource-index.ts'
import type { SourceProblem } from '../watch/source-problem.ts'
import { extentOf, extentOfLog, type LogExtent } from './log-extent.ts'
import { type Output, UsageError } from './output.ts'
import { withStandardInput } from './standard-input.ts'

export interface OfflineOptions {
  /** Manifest files and folders. */
  readonly file?: readonly string[]
  /** A log file of a run, or an export of one (`sluice log -o json`). */
  readonly logFile?: string
  /** Address of a NATS server that keeps a log. */
  readonly nats?: string
  /** Only events up to this position, or up to this time (RFC 3339). */
  readonly at?: string
}

export interface Recording {
  readonly events: readonly Recorded[]
  /** What the log still has of its history. */
  readonly extent: LogExtent
  /** Problems of the manifests; empty where a log was read. */
  readonly problems: readonly SourceProblem[]
}

/** @throws UsageError where nothing, or several things, are named, or the input is unreadable. */
export async function readRecording(options: OfflineOptions): Promise<Recording> {
  const recording = await readAll(options)
  const { at } = options
  if (at === undefined) return recording
  const isUpTo = momentOf(at)
  return { ...recording, events: recording.events.filter(isUpTo) }
}

/** Tells on standard error that a log has not all of its history, and what stands in for it. */
export function tellExtent({ extent: { notice } }: Recording, output: Output, name = ''): void {
  if (notice !== undefined) output.report(`${name}${notice}`)
}

/** @throws UsageError */
function momentOf(at: string): (recorded: Recorded) => boolean {
  if (/^\d+$/.test(at)) {
    const last = Number(at)
    return ({ position }) => position <= last
  }
  const time = /^\d{4}-\d\d-\d\d/.test(at) ? Date.parse(at) : Number.NaN
  if (Number.isNaN(time)) {
    throw new UsageError(`--at ${at} is neither a position nor a time such as 2026-01-31T12:00:00Z`)
  }
  return ({ event }) => Date.parse(event.time) <= time
}

async function readAll(options: OfflineOptions): Promise<Recording> {
  const { file, logFile, nats } = options
  if ([file, logFile, nats].filter((input) => input !== undefined).length !== 1) {
    throw new UsageError('name either manifests (-f) or a log (--log-file or --nats)')
  }
  const upTo = /^\d+$/.test(options.at ?? '') ? Number(options.at) : Number.POSITIVE_INFINITY
  if (nats !== undefined) return readServer(nats, upTo)
  if (logFile !== undefined) return readLogFile(logFile, upTo)
  return listManifests(file ?? [])
}

/** @throws LogError where there is no log on the server, which is left as it is. */
async function readServer(servers: string, upTo: number): Promise<Recording> {
  const { openNatsLog } = await import('../log/nats.ts')
  const log = await openNatsLog({ servers, create: false })
  try {
    return await readLog(log, upTo)
  } finally {
    await log.close()
  }
}

async function readLog(log: EventLog, upTo: number): Promise<Recording> {
  const events = await Array.fromAsync(log.read())
  return { events, problems: [], extent: await extentOfLog(log, events, upTo) }
}

/** What a first listing of the manifests would record; `-` is standard input. */
export async function listManifests(given: readonly string[]): Promise<Recording> {
  const input = withStandardInput(given)
  try {
    const { problems, ...rest } = await listFiles(input.paths)
    const named = problems.map((problem) => ({ ...problem, file: input.nameOf(problem.file) }))
    return { ...rest, problems: named }
  } finally {
    input.dispose()
  }
}

async function listFiles(paths: readonly string[]): Promise<Recording> {
  const missing = paths.find((path) => !existsSync(path))
  if (missing !== undefined) throw new UsageError(`${missing} does not exist`)
  const log = new MemoryLog()
  const source = new FileSource({
    ...apiBinding,
    paths,
    clock: systemClock,
    cluster: 'local',
    index: new ResourceIndex('/sluice/files'),
    digestKey: randomDigestKey(),
    builtIn: builtInObjects,
    onChange: async (events: readonly SluiceEvent[]) => void (await log.append(events)),
    onProblem: () => undefined,
  })
  await source.start()
  const problems = source.problems()
  await source.close()
  const events = await Array.fromAsync(log.read())
  await log.close()
  return { events, problems, extent: extentOf(events) }
}

const sqliteMagic = 'SQLite format 3\0'
const exportStart = '{"position":'

function startsWith(path: string, start: string): boolean {
  const head = Buffer.alloc(start.length)
  const file = openSync(path, 'r')
  try {
    readSync(file, head, 0, head.length, 0)
  } finally {
    closeSync(file)
  }
  return head.toString('latin1') === start
}

/** Is a file a log or an export of one? Its first bytes tell. */
export function isLogFile(path: string): boolean {
  return startsWith(path, sqliteMagic) || startsWith(path, exportStart)
}

async function readLogFile(path: string, upTo: number): Promise<Recording> {
  if (!existsSync(path) || !statSync(path).isFile()) {
    throw new UsageError(`${path} is not a log file`)
  }
  if (!startsWith(path, sqliteMagic)) {
    const events = await Array.fromAsync(readExport(path))
    return { events, problems: [], extent: extentOf(events) }
  }
  assertReadable(path)
  const { log } = openEmbeddedLog(path)
  try {
    return await readLog(log, upTo)
  } finally {
    await log.close()
  }
}

/** A reader must never move a damaged log aside: it may belong to a running gateway. */
function assertReadable(path: string): void {
  const database = new DatabaseSync(path, { readOnly: true })
  try {
    database.prepare('PRAGMA quick_check(1)').all()
  } catch (error) {
    throw new UsageError(
      `${path} cannot be read: ${error instanceof Error ? error.message : error}`,
    )
  } finally {
    database.close()
  }
}
