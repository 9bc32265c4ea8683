/** Reading a state without a running gateway: from manifests, or from a recorded log. */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import type { SluiceEvent } from '../../events/index.ts'
import { systemClock } from '../base/clock.ts'
import { apiBinding, builtInObjects, regexProblem } from '../control-plane/api-binding.ts'
import { isExport, readExport } from '../log/export.ts'
import { type EventLog, MemoryLog, type Recorded, readEmbeddedLog } from '../log/index.ts'
import type { DerivationOptions } from '../replay/index.ts'
import { randomDigestKey } from '../watch/digest-key.ts'
import { FileSource } from '../watch/files.ts'
import { ResourceIndex } from '../watch/resource-index.ts'
import { formatProblem, isUnreadable, type SourceProblem } from '../watch/source-problem.ts'
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
  /** Events that an export lacks between others, found as it is read. */
  readonly gaps: readonly Gap[]
  /** How its events are to be folded. */
  readonly derivation: DerivationOptions
}

/** Positions of a log, the last one included. */
interface Gap {
  readonly from: number
  readonly to: number
}

/** A recording whose events are read as they are asked for, once: no more than a few are held. */
export interface OpenRecording extends Omit<Recording, 'events'> {
  readonly events: AsyncIterable<Recorded>
  close(): Promise<void>
}

/** @throws UsageError where nothing, or several things, are named, or the input is unreadable. */
export async function openRecording(options: OfflineOptions): Promise<OpenRecording> {
  const moment = options.at === undefined ? undefined : momentOf(options.at)
  const recording = await openAny(options, moment?.position ?? Number.POSITIVE_INFINITY)
  const timeMs = moment?.timeMs
  if (timeMs === undefined) return recording
  const isUpTo = ({ event }: Recorded) => Date.parse(event.time) <= timeMs
  return { ...recording, events: filtered(recording.events, isUpTo) }
}

/** The whole of a recording, for who looks at events in other orders. @throws UsageError as above. */
export async function readRecording(options: OfflineOptions): Promise<Recording> {
  const { close, ...recording } = await openRecording(options)
  try {
    return { ...recording, events: await Array.fromAsync(recording.events) }
  } finally {
    await close()
  }
}

async function* filtered(
  events: AsyncIterable<Recorded>,
  isWanted: (recorded: Recorded) => boolean,
): AsyncGenerator<Recorded> {
  for await (const recorded of events) if (isWanted(recorded)) yield recorded
}

/**
 * Tells on standard error what an answer does not rest on: objects of the manifests that are refused,
 * history that a log has not, and what stands in for it. To be called when the events were read.
 */
export function tellRecording(
  { problems, extent: { notice }, gaps }: Recording,
  output: Output,
  name = '',
): void {
  tellProblems(problems, output)
  if (notice !== undefined) output.report(`${name}${notice}`)
  if (gaps.length > 0) output.report(`${name}${gapText(gaps)}`)
}

export function tellProblems(problems: readonly SourceProblem[], output: Output): void {
  for (const problem of problems) output.report(formatProblem(problem))
}

/** Most gaps that are named. */
const shownGaps = 5

export function gapText(gaps: readonly Gap[]): string {
  const named = gaps
    .slice(0, shownGaps)
    .map(({ from, to }) => (from === to ? from : `${from}-${to}`))
  const more = gaps.length > shownGaps ? ', …' : ''
  return `the log lacks the events at ${named.join(', ')}${more}: what they changed is missing here`
}

/** @throws UsageError */
function momentOf(at: string): { readonly position?: number; readonly timeMs?: number } {
  if (/^\d+$/.test(at)) return { position: Number(at) }
  const timeMs = /^\d{4}-\d\d-\d\d/.test(at) ? Date.parse(at) : Number.NaN
  if (Number.isNaN(timeMs)) {
    throw new UsageError(`--at ${at} is neither a position nor a time such as 2026-01-31T12:00:00Z`)
  }
  return { timeMs }
}

async function openAny(options: OfflineOptions, upTo: number): Promise<OpenRecording> {
  const { file, logFile, nats } = options
  if ([file, logFile, nats].filter((input) => input !== undefined).length !== 1) {
    throw new UsageError('name either manifests (-f) or a log (--log-file or --nats)')
  }
  if (nats !== undefined) return openServer(nats, upTo)
  if (logFile !== undefined) return openLogFile(logFile, upTo)
  const { events, ...listed } = await listManifests(file ?? [])
  const unread = listed.problems.filter(isUnreadable)
  if (unread.length > 0) throw new UsageError(unread.map(formatProblem).join('\n'))
  return { ...listed, ...streamed(upToPosition(events, upTo)) }
}

/** A log holds what a gateway fetched, and no manifests. */
const recorded = { problems: [], derivation: { checkRegex: regexProblem } }

/** @throws LogError where there is no log on the server, which is left as it is. */
async function openServer(servers: string, upTo: number): Promise<OpenRecording> {
  const { openNatsLog } = await import('../log/nats.ts')
  return openLog(await openNatsLog({ servers, create: false }), upTo)
}

async function openLog(log: EventLog, upTo: number): Promise<OpenRecording> {
  const close = () => log.close()
  try {
    const extent = await extentOfLog(log, upTo)
    return { ...recorded, events: upToPosition(log.read(), upTo), gaps: [], extent, close }
  } catch (error) {
    await close()
    throw error
  }
}

async function* upToPosition(
  events: AsyncIterable<Recorded> | Iterable<Recorded>,
  last: number,
): AsyncGenerator<Recorded> {
  for await (const recorded of events) {
    if (recorded.position > last) return
    yield recorded
  }
}

const streamed = (events: AsyncIterable<Recorded>) => ({ events, close: async () => undefined })

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
  const derivation = { checkRegex: regexProblem, keySetsArePending: true }
  return { events, problems, gaps: [], extent: extentOf(), derivation }
}

const sqliteMagic = 'SQLite format 3\0'

function isDatabase(path: string): boolean {
  const head = Buffer.alloc(sqliteMagic.length)
  const file = openSync(path, 'r')
  try {
    readSync(file, head, 0, head.length, 0)
  } finally {
    closeSync(file)
  }
  return head.toString('latin1') === sqliteMagic
}

/** Is a file a log or an export of one? What it begins with tells. */
export function isLogFile(path: string): boolean {
  return isDatabase(path) || isExport(path)
}

async function openLogFile(path: string, upTo: number): Promise<OpenRecording> {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`${path} does not exist`)
  if (!found.isFile()) throw new UsageError(`${path} is not a log file`)
  if (isDatabase(path)) return openLog(readEmbeddedLog(path), upTo)
  const extent = extentOf(await firstExported(path))
  const gaps: Gap[] = []
  const events = upToPosition(noteGaps(readExport(path), gaps), upTo)
  return { ...recorded, ...streamed(events), gaps, extent }
}

/** Somebody may have taken lines out of an export, or asked for some subjects only. */
async function* noteGaps(events: AsyncIterable<Recorded>, gaps: Gap[]): AsyncGenerator<Recorded> {
  let last: number | undefined
  for await (const recorded of events) {
    const from = (last ?? recorded.position - 1) + 1
    if (recorded.position > from) gaps.push({ from, to: recorded.position - 1 })
    last = recorded.position
    yield recorded
  }
}

async function firstExported(path: string): Promise<number | undefined> {
  for await (const { position } of readExport(path)) return position
  return undefined
}
