/** What a console shows. The page folds the events by itself, so that the server only passes data on. */

import type { EventLog } from '../../../../control/log/index.ts'
import type { RecordedDecision } from '../../../../past/decisions/record.ts'
import type { SeriesAnswer, SeriesQuestion } from '../../../../past/series/answer.ts'

interface DecisionQuery {
  readonly id?: string
  readonly status?: string
  readonly route?: string
  readonly backend?: string
  readonly since?: string
  readonly until?: string
}

/** A query that a user must correct. */
export class QueryError extends Error {}

/** The records of decisions about requests. */
interface ConsoleDecisions {
  /**
   * Passes the selected records to `use`, oldest first, until it returns false. `report` receives what cannot
   * be read.
   * @throws QueryError
   */
  read(
    query: DecisionQuery,
    report: (problem: string) => void,
    use: (decision: RecordedDecision) => unknown,
  ): Promise<void>
  /** Yields the records of requests that end from now on. */
  tail(signal: AbortSignal): AsyncIterable<RecordedDecision>
}

/**
 * Runs a command whose answer needs more than the fold, such as `simulate`, in another thread. Resolves
 * to undefined if there is no such command.
 */
type RunCommand = (
  name: string,
  options: Readonly<Record<string, unknown>>,
) => Promise<CommandOutput | undefined>

/** Runs a command that changes something, in the name of `author`. Resolves to undefined if there is none. */
type RunAction = (
  name: string,
  options: Readonly<Record<string, unknown>>,
  author: string,
) => Promise<CommandOutput | undefined>

export interface CommandOutput {
  readonly exitCode: number
  /** What the command prints to standard output with `-o json`. */
  readonly output: string
  /** What it prints to standard error. */
  readonly reports: readonly string[]
}

/**
 * Sends a request that a page has described to a listener of the gateway in this process, and yields the parts of
 * the response as they arrive. The last part says that the response is complete, or why it is not.
 * @throws QueryError if the description is wrong
 */
type SendRequest = (
  request: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
) => AsyncIterable<object>

export interface ConsoleSource {
  /**
   * Returns the event log; undefined while it is being opened. Not set if the source is an export, which the
   * page reads by itself.
   */
  readonly log?: () => EventLog | undefined
  /** Path of an export, which may be compressed with gzip. */
  readonly exportFile?: string
  /** Whether this process appends to the log, so that `tail` yields new events at once. */
  readonly isOwnLog?: boolean
  /** Whether the source belongs to a gateway or controller that runs in this process. */
  readonly isLive: boolean
  readonly decisions?: ConsoleDecisions
  /** Returns the metrics of this process in the Prometheus text format. */
  readonly metrics?: () => Promise<string>
  /**
   * Returns time series of the proxy in this process, or of all proxies of this controller; undefined while the
   * process is starting.
   */
  readonly series?: (question: SeriesQuestion) => Promise<SeriesAnswer | undefined>
  readonly runCommand?: RunCommand
  /** Not set if people may not act, which is the default. */
  readonly runAction?: RunAction
  /** Not set if pages may not send requests, which is the default. */
  readonly send?: SendRequest
  readonly version: string
  readonly foldVersion: string
}
