/** Replays a log on all cores: threads fold its segments, which begin and end at snapshots. */
import { availableParallelism } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { Worker } from 'node:worker_threads'
import { foldVersion } from '../../../past/replay/index.ts'
import type { OpenRecording, RecordingOptions } from '../recording/recording.ts'
import { withCount } from '../shared/terminal.ts'
import {
  replaySegment,
  type SegmentResult,
  type SegmentTask,
  type ThreadMessage,
  type ThreadTask,
} from './segment.ts'

/** URL of the thread's module: next to this file if run from source, in the flat build folder if bundled. */
const entry = import.meta.url.endsWith('.ts')
  ? new URL('./thread.ts', import.meta.url)
  : new URL('./replay-thread.js', import.meta.url)

/** More threads would need more memory than they save time: each has the whole state. */
const maxThreads = 8

/** A log with fewer events than this for each thread is replayed by fewer threads. */
const leastEvents = 20_000

/** Limits the memory of a thread that folds events, most of which is garbage. */
const threadLimits = { maxYoungGenerationSizeMb: 16 }

/**
 * A V8 flag. Heaps grow by half between full collections, instead of to four times the live bytes. Each thread has the
 * whole state, so a long log would otherwise take twice the memory (docs/adr/0021-flags-of-v8.md).
 */
const heapGrowth = '--heap-growing-percent=50'

/** To compare a snapshot takes as long as 1,500 events. A few show which part of a log is damaged. */
const comparedSnapshots = 16

export interface ReplayOptions extends RecordingOptions {
  /** Compares all snapshots, instead of a few that are spread over the log. */
  readonly allSnapshots?: boolean
}

/** What was found in the whole log. */
export interface VerifiedLog extends SegmentResult {
  readonly snapshots: { readonly stored: number; readonly compared: number }
}

/** Replays a log that has snapshots. Without any, there is one segment, which this thread folds. */
export async function replayParallel(
  { source, extent, derivation }: OpenRecording & Required<Pick<OpenRecording, 'source'>>,
  options: ReplayOptions,
): Promise<VerifiedLog> {
  const { log, to } = source
  const base = extent.isSameFoldVersion ? extent.base?.position : undefined
  const begin = base ?? 0
  const own = (await log.snapshots())
    .filter((one) => one.foldVersion === foldVersion && one.position > begin && one.position <= to)
    .map(({ position }) => position)
  const tasks = cut({ begin, base, to, own }, options.allSnapshots ? own.length : comparedSnapshots)
  setFlagsFromString(heapGrowth)
  const results = await withCount('events read', (onRead) => {
    const [only] = tasks
    return tasks.length === 1 && only !== undefined
      ? Promise.all([replaySegment(log, only, derivation, onRead)])
      : Promise.all(tasks.map((task) => runThread(task, options, onRead)))
  })
  const compared = tasks.reduce((sum, { snapshots }) => sum + snapshots.length, 0)
  return { ...merge(results), snapshots: { stored: own.length, compared } }
}

interface Range {
  readonly begin: number
  readonly base: number | undefined
  readonly to: number
  /** Positions of the snapshots. */
  readonly own: readonly number[]
}

/** Cuts a log at snapshots into segments of about the same length, which compare some of the others. */
function cut({ begin, base, to, own }: Range, count: number): SegmentTask[] {
  const threads = Math.min(
    availableParallelism(),
    maxThreads,
    Math.ceil((to - begin) / leastEvents),
  )
  const starts = new Set<number>()
  for (let thread = 1; thread < threads; thread++) {
    const ideal = begin + ((to - begin) * thread) / threads
    const nearest = own.findLast((position) => position <= ideal)
    if (nearest !== undefined) starts.add(nearest)
  }
  const stride = Math.ceil(own.length / count)
  // The newest one is always compared, since commands begin there.
  const compared = own.filter(
    (position, index) => starts.has(position) || (own.length - 1 - index) % stride === 0,
  )
  return [begin, ...starts].map((from, index, all) => {
    const end = all[index + 1] ?? to
    return {
      ...(index > 0 ? { from } : base !== undefined && { from: base }),
      isContinued: index > 0,
      to: end,
      snapshots: compared.filter((position) => position > from && position <= end),
    }
  })
}

function runThread(
  task: SegmentTask,
  options: RecordingOptions,
  onRead: (events: number) => void,
): Promise<SegmentResult> {
  const { logFile, nats } = options
  const workerData: ThreadTask = { ...task, at: { logFile, nats } }
  const thread = new Worker(entry, { workerData, resourceLimits: threadLimits })
  return new Promise((resolve, reject) => {
    thread.on('message', (message: ThreadMessage) => {
      if ('read' in message) onRead(message.read)
      else resolve(message.result)
    })
    thread.once('error', reject)
    thread.once('exit', () => reject(new Error('a thread ended without a result')))
  })
}

/** Joins the results of consecutive segments. */
function merge(results: readonly SegmentResult[]): SegmentResult {
  const sum = (numberOf: (result: SegmentResult) => number) =>
    results.reduce((total, result) => total + numberOf(result), 0)
  return {
    ...(results.at(-1) as SegmentResult),
    events: sum(({ events }) => events),
    missing: sum(({ missing }) => missing),
    published: sum(({ published }) => published),
    incomparable: sum(({ incomparable }) => incomparable),
    redacted: sum(({ redacted }) => redacted),
    different: results.flatMap(({ different }) => different),
    wrongSnapshots: results.flatMap(({ wrongSnapshots }) => wrongSnapshots),
  }
}
