import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { useServed } from './served.ts'
import type { Shown } from './worker-client.ts'

/** Number of the newest recorded requests that are read. */
export const recentRecords = 2_000
const everyMs = 5_000

/** What `read` makes of the newest recorded requests, from time to time again. The last record is a summary of the answer. */
export const useRecentRecords = <Value>(
  key: string,
  read: (records: readonly Partial<RecordedDecision>[]) => Value,
): Shown<Value> =>
  useServed(
    key,
    async (server, signal) => {
      const path = `decisions?limit=${recentRecords}`
      return read(await Array.fromAsync(server.lines<Partial<RecordedDecision>>(path, signal)))
    },
    everyMs,
  )
