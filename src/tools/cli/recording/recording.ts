/** Reads a state without a running gateway: from manifests, or from a recorded log. */
import { createWriteStream, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { ResourceEvent } from '../../../../events/index.ts'
import { readExport } from '../../../control/log/export.ts'
import {
  type EventLog,
  MemoryLog,
  type Position,
  type Recorded,
  readEmbeddedLog,
} from '../../../control/log/index.ts'
import { apiBinding, builtInObjects, regexProblem } from '../../../control/plane/api-binding.ts'
import { type DigestKey, randomDigestKey } from '../../../control/watch/digest-key.ts'
import { FileSource } from '../../../control/watch/files.ts'
import { ResourceIndex } from '../../../control/watch/resource-index.ts'
import {
  formatProblem,
  isUnreadable,
  type SourceProblem,
} from '../../../control/watch/source-problem.ts'
import { secretResource, type VersionedResource } from '../../../ground/model/resources.ts'
import { type DerivationOptions, type Fold, foldEvents } from '../../../past/replay/index.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { counted, withCount } from '../shared/terminal.ts'
import type { FieldPlaces } from './field-places.ts'
import { extentOf, extentOfExport, extentOfLog, type LogExtent, type Start } from './log-extent.ts'
import { isDatabase } from './log-files.ts'
import { openedLogs } from './opened-logs.ts'
import { withoutForeign } from './skipped-objects.ts'

export interface RecordingOptions {
  /** Manifest files and folders. */
  readonly file?: readonly string[]
  /** A log file of a run, or an export of one (`sluice log -o json`). */
  readonly logFile?: string
  /** Address of a NATS server that stores a log. */
  readonly nats?: string
  /** Position or time (RFC 3339) of the last event to read. */
  readonly at?: string
  /** Key for the digests of secret values in manifests. If omitted, they compare to no other digests. */
  readonly digestKey?: DigestKey
  /** Filled with the places of the fields of manifests. If omitted, they are not kept. */
  readonly places?: FieldPlaces
}

export interface Recording {
  readonly events: readonly Recorded[]
  /** How much of its history the log still has. */
  readonly extent: LogExtent
  /** Problems of the manifests; empty for a log. */
  readonly problems: readonly SourceProblem[]
  /** Counts the objects of manifests that do not concern gateways, if there are any. */
  readonly skipped?: string | undefined
  /** Ranges of events that an export lacks between other events; filled while the events are read. */
  readonly gaps: readonly LogGap[]
  /** Options for folding the events. */
  readonly derivation: DerivationOptions
  /** Values of the Secrets of manifests. A log has none. */
  readonly secrets: readonly VersionedResource[]
}

/** A range of positions of missing events; both ends are included. */
interface LogGap {
  readonly from: number
  readonly to: number
}

/** A recording whose events can be iterated once. Only a few of them are in memory at a time. */
export interface OpenRecording extends Omit<Recording, 'events'> {
  readonly events: AsyncIterable<Recorded> | Iterable<Recorded>
  /** Set if the events can be read in any order. */
  readonly source?: LogSource
  readonly close?: () => Promise<void>
}

/** A log, and how far it is read. */
export interface LogSource {
  readonly log: EventLog
  readonly to: Position
}

/**
 * Passes an open recording to `read`, then closes it. If it starts at the nearest stored state, its events
 * are only those after that state.
 * @throws UsageError if the options name no input or more than one, or if the input is unreadable
 */
export async function withRecording<Result>(
  options: RecordingOptions,
  read: (recording: OpenRecording) => Promise<Result>,
  start: Start = 'oldest',
): Promise<Result> {
  const limit = limitOf(options.at)
  const recording = await openInput(options, limit, start)
  try {
    const { source, events } = recording
    return await withCount('events read', (add) =>
      read({ ...recording, events: counted(source ? events : eventsUpTo(limit, events), add) }),
    )
  } finally {
    await recording.close?.()
  }
}

/**
 * Reads a whole recording and reports objects of manifests that were refused, and events that the log no
 * longer has. `name` is a prefix of the notices about the log.
 * @throws UsageError in the same cases as `withRecording`
 */
export async function readRecording(
  options: RecordingOptions,
  report: Output['report'],
  name = '',
): Promise<Recording> {
  const recording = await withRecording(options, async (open) => {
    return { ...open, events: await Array.fromAsync(open.events) }
  })
  reportProblems(recording, report, name)
  return recording
}

/** Reports problems of manifests, and what a log lacks. */
export function reportProblems(
  recording: Pick<Recording, 'problems' | 'skipped' | 'extent' | 'gaps'>,
  report: Output['report'],
  name = '',
): void {
  for (const problem of recording.problems) report(formatProblem(problem))
  if (recording.skipped !== undefined) report(recording.skipped)
  for (const notice of logNotices(recording)) report(`${name}${notice}`)
}

/**
 * Folds a recording while it is read, from the nearest stored state, so that only a few events are in memory.
 * Reports the same as `readRecording`. `derivation` replaces options of the recording.
 * @throws UsageError in the same cases as `withRecording`
 */
export async function readState(
  options: RecordingOptions,
  report: Output['report'],
  { name = '', derivation = {} }: StateOptions = {},
): Promise<FoldedState> {
  return withRecording(
    options,
    async (recording) => {
      const folding = { ...recording.derivation, ...derivation }
      const fold = await foldEvents(recording.events, folding, recording.extent.base)
      reportProblems(recording, report, name)
      return { fold, secrets: recording.secrets, extent: recording.extent }
    },
    'nearest',
  )
}

/** The state after the last event, with the secret values of manifests. */
interface FoldedState extends Pick<Recording, 'secrets' | 'extent'> {
  readonly fold: Fold
}

interface StateOptions {
  /** Prefix of the notices about the log. */
  readonly name?: string
  readonly derivation?: Partial<DerivationOptions>
}

/** The state after the last event of a recording. */
export function foldRecording({ events, derivation, extent }: Recording): Promise<Fold> {
  return foldEvents(events, derivation, extent.base)
}

const maxListedGaps = 5

/** Messages about the events that the log lacks. */
export function logNotices({ extent, gaps }: Pick<Recording, 'extent' | 'gaps'>): string[] {
  const { notices } = extent
  if (gaps.length === 0) return [...notices]
  const listed = gaps
    .slice(0, maxListedGaps)
    .map(({ from, to }) => (from === to ? from : `${from}-${to}`))
  const positions = `${listed.join(', ')}${gaps.length > maxListedGaps ? ', …' : ''}`
  return [...notices, `the log lacks the events at ${positions}: their changes are missing here`]
}

/** The last event to read: `position` is infinite if `--at` gives a time, or is omitted. */
interface ReadLimit {
  readonly position: number
  readonly timeMs?: number
}

/** Reads the value of an option for a moment. @throws UsageError */
export function limitOf(at: string | undefined, option = '--at'): ReadLimit {
  const position = Number.POSITIVE_INFINITY
  if (at === undefined) return { position }
  if (/^\d+$/.test(at)) return { position: Number(at) }
  const timeMs = parseTimeMs(at)
  if (timeMs === undefined) {
    throw new UsageError(
      `${option} ${at} is neither a position nor a time such as 2026-01-31T12:00:00Z`,
    )
  }
  return { position, timeMs }
}

/** Reads a time such as 2026-01-31T12:00:00Z, or a day; undefined if the text is neither. Without an offset, it is UTC. */
export function parseTimeMs(text: string): number | undefined {
  const zone = /T\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(text) ? 'Z' : ''
  const timeMs = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(`${text}${zone}`) : Number.NaN
  return Number.isNaN(timeMs) ? undefined : timeMs
}

async function* eventsUpTo(
  { position, timeMs }: ReadLimit,
  events: OpenRecording['events'],
): AsyncGenerator<Recorded> {
  for await (const recorded of events) {
    if (recorded.position > position) return
    if (timeMs === undefined || Date.parse(recorded.event.time) <= timeMs) yield recorded
  }
}

/** Opens the only input that the options name. */
async function openInput(
  options: RecordingOptions,
  limit: ReadLimit,
  start: Start,
): Promise<OpenRecording> {
  const { file, logFile, nats } = options
  if ([file, logFile, nats].filter((input) => input !== undefined).length !== 1) {
    throw new UsageError('name either manifests (-f) or a log (--log-file or --nats)')
  }
  if (nats !== undefined) return openLog(await openLogOf({ nats }), limit, start)
  if (logFile !== undefined) return openLogFile(logFile, limit, start)
  const recording = await readManifests(file ?? [], options)
  const unreadable = recording.problems.filter(isUnreadable)
  if (unreadable.length === 0) return recording
  throw new UsageError(unreadable.map(formatProblem).join('\n'))
}

/** Opens a log file or the log on a NATS server to read it. */
export async function openLogOf({
  logFile = '',
  nats,
}: Pick<RecordingOptions, 'logFile' | 'nats'>): Promise<EventLog> {
  if (nats === undefined) return readEmbeddedLog(logFile)
  const { openNatsLog } = await import('../../../control/log/nats.ts')
  return openNatsLog({ servers: nats, create: false })
}

/** A log has no problems of manifests, and it records fetched key sets, so that none of them is pending. */
const logDefaults = { problems: [], secrets: [], derivation: { checkRegex: regexProblem } }

async function openLog(log: EventLog, limit: ReadLimit, start: Start): Promise<OpenRecording> {
  const close = () => log.close()
  try {
    const to = await lastPositionOf(log, limit)
    const extent = await extentOfLog(log, to, start)
    const { base } = extent
    const from = start === 'nearest' && base ? { from: (base.position + 1) as Position } : {}
    const events = log.read({ ...from, to })
    return { ...logDefaults, events, source: { log, to }, gaps: [], extent, close }
  } catch (error) {
    await close()
    throw error
  }
}

/**
 * Position of the last event up to a limit. A time is found by bisection: times rise with positions, except
 * for what the clocks of replicas differ.
 */
async function lastPositionOf(log: EventLog, { position, timeMs }: ReadLimit): Promise<Position> {
  const last = await log.lastPosition()
  if (timeMs === undefined) return Math.min(position, last) as Position
  let low = (await log.firstPosition()) - 1
  let high: number = last
  while (low < high) {
    const middle = Math.ceil((low + high) / 2) as Position
    const [found] = await Array.fromAsync(log.read({ from: middle, to: middle }))
    if (found !== undefined && Date.parse(found.event.time) <= timeMs) low = middle
    else high = middle - 1
  }
  return low as Position
}

async function openLogFile(path: string, limit: ReadLimit, start: Start): Promise<OpenRecording> {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`${path} does not exist`)
  if (!found.isFile()) throw new UsageError(`${path} is not a log file`)
  openedLogs.add(path)
  if (isDatabase(path)) return openLog(readEmbeddedLog(path), limit, start)
  const gaps: LogGap[] = []
  const events = noteGaps(readExport(path), gaps)
  return { ...logDefaults, events, gaps, extent: await extentOfExport(path, limit) }
}

/** Passes events on and records the gaps between them. An export of only some subjects has gaps. */
async function* noteGaps(
  events: AsyncIterable<Recorded>,
  gaps: LogGap[],
): AsyncGenerator<Recorded> {
  let last: number | undefined
  for await (const recorded of events) {
    const from = (last ?? recorded.position - 1) + 1
    if (recorded.position > from) gaps.push({ from, to: recorded.position - 1 })
    last = recorded.position
    yield recorded
  }
}

/** Reads manifests; the path `-` is standard input. @throws UsageError if a path does not exist */
export async function readManifests(
  paths: readonly string[],
  options: ListingOptions = {},
): Promise<Recording> {
  if (!paths.includes('-')) return listFiles(paths, options)
  const folder = mkdtempSync(join(tmpdir(), 'sluice-'))
  const input = join(folder, 'input.yaml')
  try {
    // Manifests may contain Secrets, so only the owner may read the copy.
    await pipeline(process.stdin, createWriteStream(input, { mode: 0o600 }))
    const files = paths.map((path) => (path === '-' ? input : path))
    const nameOf = (file: string) => (file === input ? '(standard input)' : file)
    return await listFiles(files, { ...options, nameOf })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface ListingOptions extends Pick<RecordingOptions, 'digestKey' | 'places'> {
  /** Whether Secrets may take values from files. The default is true. */
  readonly readsFiles?: boolean | undefined
  /** Returns the name of a file for users. If omitted, it is the path. */
  readonly nameOf?: (file: string) => string
}

async function listFiles(
  paths: readonly string[],
  {
    digestKey = randomDigestKey(),
    places,
    readsFiles = true,
    nameOf = (file) => file,
  }: ListingOptions,
): Promise<Recording> {
  const missing = paths.find((path) => !existsSync(path))
  if (missing !== undefined) throw new UsageError(`${missing} does not exist`)
  const log = new MemoryLog()
  const named = (event: ResourceEvent) => withOriginFile(event, nameOf)
  const secrets: VersionedResource[] = []
  const source = new FileSource({
    ...apiBinding,
    paths,
    digestKey,
    keepSecret: (digest, value) => secrets.push(secretResource(digest, Uint8Array.from(value))),
    builtIn: builtInObjects,
    references: {
      variable: (name) => process.env[name],
      folderOf: readsFiles ? (file) => dirname(nameOf(file)) : undefined,
      isOfGateway: false,
    },
    ...(places && {
      onPlaced: (claim, placeOf) => places.add(nameOf(claim.origin.file), claim, placeOf),
    }),
    onChange: async (events) => void (await log.append(events.map(named))),
    onProblem: () => undefined,
  })
  await source.lead(new ResourceIndex('/sluice/files'))
  const found = source.problems().map((one) => ({ ...one, file: nameOf(one.file) }))
  await source.close()
  const events = await Array.fromAsync(log.read())
  await log.close()
  const derivation = { checkRegex: regexProblem, keySetsArePending: true }
  return { events, ...withoutForeign(found), gaps: [], extent: extentOf(1), derivation, secrets }
}

function withOriginFile(event: ResourceEvent, nameOf: (file: string) => string): ResourceEvent {
  if (event.type !== 'dev.sluice.resource.applied.v1') return event
  const { origin } = event.data
  if (origin?.file === undefined) return event
  return { ...event, data: { ...event.data, origin: { ...origin, file: nameOf(origin.file) } } }
}
