/** Reads decision records from a folder or a NATS server, and selects some of them. */
import { statSync } from 'node:fs'
import { parseDurationMs } from '../../../ground/base/duration.ts'
import { limitPeriodMs } from '../../../ground/base/limit-periods.ts'
import {
  type ReadProblem,
  type ReadResult,
  readBlocks,
  readFolder,
} from '../../../past/decisions/read.ts'
import type { RecordedDecision } from '../../../past/decisions/record.ts'
import { parseTimeMs } from '../recording/recording.ts'
import { type Output, UsageError } from '../shared/output.ts'

export interface DecisionSource {
  /** Folder with the files of the proxies. */
  readonly recordDir?: string
  /** Address of a NATS server that stores records. */
  readonly nats?: string
}

/** Returns a folder of records. @throws UsageError if it is not there */
export function folderOf(recordDir: string): string {
  const found = statSync(recordDir, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`${recordDir} does not exist`)
  if (!found.isDirectory()) throw new UsageError(`${recordDir} is not a folder`)
  return recordDir
}

/**
 * Yields all records, or those of blocks that contain the id, and a problem for each unreadable part.
 * @throws UsageError if the folder is unreadable
 */
async function* readDecisions(
  { recordDir, nats }: DecisionSource,
  id: string | undefined,
): AsyncGenerator<ReadResult> {
  if (recordDir !== undefined) {
    yield* readFolder(folderOf(recordDir), id)
  } else if (nats !== undefined) {
    const { readPublishedBlocks } = await import('../../../control/log/nats-decision-reader.ts')
    const { withoutPasswords } = await import('../../../control/log/nats.ts')
    const server = withoutPasswords(nats)
    for await (const { sequence, bytes } of readPublishedBlocks(nats)) {
      yield* readBlocks(bytes, `message ${sequence} of ${server}`, id)
    }
  }
}

export interface DecisionFilter {
  readonly id?: string
  /** A status such as `403`, or a class such as `4xx`. */
  readonly status?: string
  /** `namespace/name`. */
  readonly route?: string
  /** A time such as 2026-01-31T12:00:00Z, or a duration before now such as `15m`. */
  readonly since?: string
  /** A time, or a duration before now. */
  readonly until?: string
  /** `namespace/name` of a GatewayBackend or a Service. */
  readonly backend?: string
  /** Name of a tool, as its server names it. */
  readonly tool?: string
  /** Name of a target of an MCP backend. */
  readonly target?: string
  /** What has refused a message of an MCP client, such as `approval`; `true` for anything. */
  readonly refusedBy?: string | true
  readonly principal?: string
}

/** The options that compare a field of the records, and the field. */
const detailOptions = [
  ['tool', 'gen_ai.tool.name'],
  ['target', 'mcp.target'],
  ['refusedBy', 'sluice.mcp.refused.by'],
  ['principal', 'identity.principal'],
] as const

type Test = (decision: RecordedDecision) => boolean

/** @throws UsageError */
function testOf(filter: DecisionFilter): Test {
  const { id, status, route, backend, since, until } = filter
  const tests: Test[] = []
  for (const [option, field] of detailOptions) {
    const wanted = filter[option]
    if (wanted !== undefined) tests.push(({ details }) => hasValue(details[field], wanted))
  }
  if (id !== undefined) tests.push((decision) => decision.id === id)
  if (status !== undefined) tests.push(statusTest(status))
  if (route !== undefined) {
    if (!/^[^/\s]+\/[^/\s]+$/.test(route)) {
      throw new UsageError(`--route ${route} is not NAMESPACE/NAME`)
    }
    tests.push((decision) => decision.route.route?.split(' ')[1] === route)
  }
  if (backend !== undefined) {
    tests.push((decision) => decision.route.backend?.split(' ').at(-1) === backend)
  }
  if (since !== undefined) {
    const first = timeOf(since, '--since')
    tests.push(({ time }) => time >= first)
  }
  if (until !== undefined) {
    const end = timeOf(until, '--until')
    tests.push(({ time }) => time < end)
  }
  return (decision) => tests.every((test) => test(decision))
}

/** The fields of a batch have the values of all messages. */
function hasValue(value: string | number | undefined, wanted: string | true): boolean {
  if (value === undefined) return false
  return wanted === true || `${value}` === wanted || `${value}`.split(',').includes(wanted)
}

function statusTest(status: string): Test {
  if (!/^[1-5](\d\d|xx)$/i.test(status)) {
    throw new UsageError(
      `--status ${status} is neither a status such as 403 nor a class such as 4xx`,
    )
  }
  const code = Number(status)
  if (!Number.isNaN(code)) return ({ response }) => response.status === code
  const hundreds = Number(status[0])
  return ({ response }) => Math.floor(response.status / 100) === hundreds
}

/**
 * Reads a time, or a duration before now. Returns it in the format of the times of records, which can be compared as
 * texts.
 * @throws UsageError
 */
export function timeOf(text: string, option: string): string {
  const duration = readDurationMs(text)
  const timeMs = duration === undefined ? parseTimeMs(text) : Date.now() - duration
  if (timeMs !== undefined) return new Date(timeMs).toISOString()
  throw new UsageError(
    `${option} ${text} is neither a time such as 2026-01-31T12:00:00Z nor a duration such as 15m or 30d`,
  )
}

/** Reads a duration in milliseconds, also in days. @throws UsageError */
export function durationOf(text: string, option: string): number {
  const duration = readDurationMs(text)
  if (duration !== undefined) return duration
  throw new UsageError(`${option} ${text} is not a duration such as 15m or 30d`)
}

function readDurationMs(text: string): number | undefined {
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  return days === undefined ? parseDurationMs(text) : Number(days) * limitPeriodMs.Days
}

interface Selection {
  /** Number of records that were selected. */
  readonly selected: number
  /**
   * False if no part could be read. If an id is given, false if no readable part has it and a part is
   * damaged, because that part may have it.
   */
  readonly isReadable: boolean
}

/** Maximum number of problems that are reported one by one. */
const maxReported = 20

/** Formats why a part of the records cannot be read. */
export const problemText = ({ file, offset, message }: ReadProblem): string =>
  `${file}: offset ${offset}: ${message}`

/**
 * Passes the selected records to `use`, one by one, until it returns false. Reports what cannot be read.
 * @throws UsageError if there is no source, or it is unreadable
 */
export async function eachDecision(
  source: DecisionSource,
  filter: DecisionFilter,
  report: Output['report'],
  use: (decision: RecordedDecision) => unknown,
): Promise<Selection> {
  const test = testOf(filter)
  let read = 0
  let selected = 0
  let problems = 0
  for await (const result of readDecisions(source, filter.id)) {
    if ('problem' in result) {
      problems++
      if (problems <= maxReported) report(problemText(result.problem))
      continue
    }
    read++
    if (!test(result.decision)) continue
    selected++
    if ((await use(result.decision)) === false) break
  }
  if (problems > maxReported) report(`${problems - maxReported} more parts cannot be read`)
  // Blocks without the id are skipped, so that no record is read from a folder without damage either.
  const found = filter.id === undefined ? read : selected
  return { selected, isReadable: found > 0 || problems === 0 }
}
