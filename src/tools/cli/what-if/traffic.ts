/** Simulates recorded requests under the present state and under the candidate, and counts what differs. */

import type { AmbiguousPaths } from '../../../gateway/proxy/request/request-path.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import type { StateDifferences } from '../../../past/explain/differences.ts'
import { CostTally, openPriceList } from '../../../past/what-if/costs.ts'
import { type RequestChanges, RequestTally } from '../../../past/what-if/groups.ts'
import { exampleOf, RecordedRequests } from '../../../past/what-if/recorded-requests.ts'
import { readCatalogs } from '../catalog/files.ts'
import { problemText } from '../decisions/source.ts'
import { type Output, UsageError } from '../shared/output.ts'
import { counted, withCount } from '../shared/terminal.ts'
import type { InRange } from './budgets.ts'
import type { RecordSource } from './record-source.ts'
import type { States } from './state.ts'

interface ComparedRecords {
  readonly source: RecordSource
  readonly isIn: InRange
  readonly ambiguousPaths: AmbiguousPaths
  /** Paths of model catalogs with prices, in addition to the shipped one. */
  readonly catalog?: readonly string[]
}

/** Reads the records one after the other. Unreadable parts are reported; the others are compared. */
export async function compareRequests(
  { source, isIn, ambiguousPaths, catalog }: ComparedRecords,
  states: States,
  resources: StateDifferences['resources'],
  report: Output['report'],
): Promise<RequestChanges> {
  const tally = new RequestTally()
  const records = recordsIn(source, isIn, tally, report)
  if (Object.values(resources).every(({ length }) => length === 0)) {
    for (const { weight } of records) tally.unchanged(weight)
    return tally.resultOfRecords()
  }
  const { catalog: models, problems } = readCatalogs(catalog)
  for (const problem of problems) report(problem)
  const requests = new RecordedRequests(states, resources, {
    secrets: states.secrets,
    simulator: {
      ...(source.digestKey && { digestKey: source.digestKey }),
      settings: { ambiguousPaths },
    },
    prices: await openPriceList(models),
  })
  const costs = new CostTally()
  const compare = async (record: RecordedDecision): Promise<void> => {
    const { difference, cost } = await requests.compare(record)
    const { weight } = record
    costs.add(cost, weight)
    if (difference === undefined) tally.unchanged(weight)
    else if ('change' in difference) tally.changed(difference.change, exampleOf(record), weight)
    else tally.undecided(difference.undecided, exampleOf(record), weight)
  }
  await withCount('requests compared', async (add) => {
    for await (const record of counted(records, add)) await compare(record)
  })
  requests.close()
  const cost = costs.result()
  return { ...tally.resultOfRecords(), ...(cost && { costs: cost }) }
}

/** @throws UsageError if there are records, but none can be read */
function* recordsIn(
  source: RecordSource,
  isIn: InRange,
  tally: RequestTally,
  report: Output['report'],
): Generator<RecordedDecision> {
  let [read, problems] = [0, 0]
  for (const result of source.read()) {
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
  if (read === 0 && problems > 0) throw new UsageError(`no record in ${source.name} can be read`)
}
