/** Simulates recorded requests under the present state and under the candidate, and counts what differs. */

import type { AmbiguousPaths } from '../../../gateway/proxy/request/request-path.ts'
import { readFolder } from '../../../past/decisions/read.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import { recordKeyOf } from '../../../past/decisions/ring.ts'
import type { StateDifferences } from '../../../past/explain/differences.ts'
import { type RequestChanges, RequestTally } from '../../../past/what-if/groups.ts'
import { exampleOf, RecordedRequests } from '../../../past/what-if/recorded-requests.ts'
import { problemText } from '../decisions/source.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { counted, withCount } from '../shared/terminal.ts'
import type { InRange } from './budgets.ts'
import type { States } from './state.ts'

interface RecordFolder {
  /** Folder of decision records. */
  readonly folder: string
  readonly isIn: InRange
  readonly ambiguousPaths: AmbiguousPaths
}

/** Reads the records one after the other. Unreadable parts are reported; the others are compared. */
export async function compareRequests(
  { folder, isIn, ambiguousPaths }: RecordFolder,
  states: States,
  resources: StateDifferences['resources'],
  report: Output['report'],
): Promise<RequestChanges> {
  const tally = new RequestTally()
  const records = recordsIn(folder, isIn, tally, report)
  if (Object.values(resources).every(({ length }) => length === 0)) {
    for (const { weight } of records) tally.unchanged(weight)
    return tally.resultOfRecords()
  }
  const requests = await RecordedRequests.open(states, resources, states.secrets, {
    digestKey: recordKeyOf(folder),
    settings: { ambiguousPaths },
  })
  const compare = async (record: RecordedDecision): Promise<void> => {
    const { difference } = await requests.compare(record)
    const { weight } = record
    if (difference === undefined) tally.unchanged(weight)
    else if ('change' in difference) tally.changed(difference.change, exampleOf(record), weight)
    else tally.undecided(difference.undecided, exampleOf(record), weight)
  }
  await withCount('requests compared', async (add) => {
    for await (const record of counted(records, add)) await compare(record)
  })
  requests.close()
  return tally.resultOfRecords()
}

/** @throws UsageError if there are records, but none can be read */
function* recordsIn(
  folder: string,
  isIn: InRange,
  tally: RequestTally,
  report: Output['report'],
): Generator<RecordedDecision> {
  let [read, problems] = [0, 0]
  for (const result of readFolder(folder)) {
    if ('decision' in result) {
      read++
      if (!isIn(result.decision)) continue
      tally.madeUnder(result.decision.setting)
      yield result.decision
    } else {
      problems++
      report(problemText(result.problem))
    }
  }
  if (read === 0 && problems > 0) throw new UsageError(`no record in ${folder} can be read`)
}
