/** Opens a long log on a server, of which only a part is read: the page begins at a stored state. */
import { foldVersion } from '../../src/past/replay/index.ts'
import { readListedHead } from '../log/event-head.ts'
import { chunksOf, linesOf } from '../log/lines.ts'
import type { LoadedLog } from '../log/loaded-log.ts'
import type { StoredState } from '../log/stored-states.ts'
import type { ConsoleServer } from '../source/server.ts'
import { Slice } from './slice.ts'

/** Number of events from which on a log is not folded from its beginning. */
const longLog = 10_000
/** Number of events that are listed by one request. */
const listedEvents = 50_000
/** Milliseconds until a failed request is tried again. */
const retryMs = 2_000

/**
 * Notes the states that the server stores. Of a long log, the events up to the newest state are reserved, and
 * that state is returned.
 */
export async function openServed(
  log: LoadedLog,
  server: ConsoleServer,
  first: number,
): Promise<StoredState | undefined> {
  for (const info of await server.states()) {
    log.states.add({ ...info, load: () => server.state(info) })
  }
  const newest = log.states.nearest(Number.POSITIVE_INFINITY)
  if (newest === undefined || newest.foldVersion !== foldVersion) return undefined
  if (newest.position - first < longLog) return undefined
  log.events.reserve(first, newest.position)
  // The first event identifies the log, and the slider shows its time.
  await log.events.loadRange(0, 0)
  await log.events.load([log.events.length - 1])
  return newest
}

interface Listing {
  readonly isOpen: () => boolean
  /** Called after each part. */
  readonly onListed: () => void
}

/** Lists the events that are only reserved, the newest first. */
export async function listEarlier(
  log: LoadedLog,
  server: ConsoleServer,
  { isOpen, onListed }: Listing,
): Promise<void> {
  const first = log.events.positions[0] ?? 1
  for (let to = lastReserved(log); to >= first && isOpen(); ) {
    const from = Math.max(first, to - listedEvents + 1)
    try {
      await listRange(log, await server.get(`heads?from=${from}&to=${to}`))
      to = from - 1
      onListed()
    } catch {
      // The page says that the server does not answer, and follows the log when it does.
      await new Promise((resolve) => setTimeout(resolve, retryMs))
    }
  }
}

async function listRange(log: LoadedLog, { body }: Response): Promise<void> {
  if (body === null) return
  const slice = new Slice()
  const decoder = new TextDecoder()
  for await (const lines of linesOf(chunksOf(body))) {
    for (const line of lines) {
      if (line.length > 0) log.events.list(readListedHead(decoder.decode(line)))
      if (!slice.isOver()) continue
      await slice.next()
      // A moment that a view waits for comes first.
      await log.idle()
    }
  }
}

/** Position of the last event that is not listed; 0 if all are. */
function lastReserved({ events }: LoadedLog): number {
  const index = events.timesMs.findLastIndex((_, at) => !events.isListed(at))
  return events.positions[index] ?? 0
}
