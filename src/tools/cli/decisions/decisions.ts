/** `sluice decisions` prints decision records, one per line. */

import type { RecordedDecision } from '../../../past/decisions/record.ts'
import { exitCode, type Output, type OutputFormat, UsageError } from '../shared/output.ts'
import { printable } from '../shared/printable.ts'
import { type DecisionFilter, type DecisionSource, eachDecision } from './source.ts'
import { backendText, outcomeText, requestLine, ruleText, toolText } from './text.ts'

export interface DecisionsOptions extends DecisionSource, DecisionFilter {
  readonly output: OutputFormat
}

/**
 * Prints each record as it is read, because there may be many. Returns the exit code: 1 if no record was
 * selected, 2 if nothing could be read or a damaged part may have the record with the id.
 * @throws UsageError
 */
export async function decisions(options: DecisionsOptions, out: Output): Promise<number> {
  const { recordDir, nats, output } = options
  if ((recordDir === undefined) === (nats === undefined)) {
    throw new UsageError('name either --record-dir or --nats')
  }
  const write = output === 'json' ? (decision: RecordedDecision) => JSON.stringify(decision) : line
  const use = (decision: RecordedDecision) => {
    out.print(write(decision))
    return out.ready?.()
  }
  const { selected, isReadable } = await eachDecision(options, options, out.report, use)
  if (!isReadable) return exitCode.usage
  return selected === 0 ? exitCode.negative : exitCode.success
}

function line(decision: RecordedDecision): string {
  const { time, id, request, response, route } = decision
  const parts = [
    time,
    id,
    requestLine(request),
    `${response.status}`,
    outcomeText(decision),
    ruleText(route),
    backendText(route),
    toolText(decision),
  ]
  return printable(parts.filter((part) => part !== undefined).join('  '))
}
