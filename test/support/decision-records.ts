/** Reads the decision records of a gateway that has stopped. */
import { readFolder } from '../../src/past/decisions/read.ts'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'

/** Returns the records of a folder by the ids of their requests. Fails if a part of them cannot be read. */
export function recordsIn(folder: string): ReadonlyMap<string, RecordedDecision> {
  const records = new Map<string, RecordedDecision>()
  for (const read of readFolder(folder)) {
    if ('problem' in read) throw new Error(`${read.problem.file}: ${read.problem.message}`)
    records.set(read.decision.id, read.decision)
  }
  return records
}
