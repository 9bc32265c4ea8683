/** Messages between the main thread and its workers. */

import type { Rejection } from '../../../control/wire/channel.ts'
import type { TicketSecrets } from '../../../engines/http/tls/session-tickets.ts'
import type { CatalogText } from '../../../engines/messages/catalog/shipped.ts'
import type { AnswerQuestion, AnswerReply } from '../../../ground/model/answer-values.ts'
import type { EndedEntry, EndedReport } from '../../../ground/model/ended-sessions.ts'
import type { GrantAnswer, GrantQuestion } from '../../../ground/model/grants.ts'
import type { ListReport } from '../../../ground/model/mcp-lists.ts'
import type { BudgetMessage, BudgetQuestion } from '../budgets/worker-budgets.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import type { HealthChange } from '../upstream/checked-backend.ts'

/** The number of a TCP port, or the number and `/udp` of a UDP port. */
export type PortName = number | `${number}/udp`

export type ToWorker =
  | BudgetMessage
  | AnswerReply
  | GrantAnswer
  | {
      readonly type: 'config'
      readonly sequence: number
      readonly bytes: Uint8Array<SharedArrayBuffer>
      /** Log position of the controller; see ConfigUpdate. */
      readonly position?: number
      /** Applied before `bytes`; see ConfigUpdate. */
      readonly base?: Uint8Array<SharedArrayBuffer>
      /** More of the same sequence follows; see ConfigUpdate. */
      readonly isPart?: true
    }
  /** Reply to `claim`. If `problem` is set, the port must not be bound. */
  | { readonly type: 'claimed'; readonly port: PortName; readonly problem?: string }
  /** Replaces the keys of TLS session tickets. */
  | { readonly type: 'tickets'; readonly secrets: TicketSecrets }
  /** Replaces the user's catalogs of language models. */
  | { readonly type: 'catalogs'; readonly catalogs: readonly CatalogText[] }
  /** Sessions and tokens that are refused, in addition to those of earlier messages. */
  | { readonly type: 'ended'; readonly entries: readonly EndedEntry[] }
  | { readonly type: 'scrape'; readonly id: number }
  /** The process is about to end: flush the access log, then increment the gate. */
  | { readonly type: 'flush'; readonly gate: Int32Array<SharedArrayBuffer> }
  | { readonly type: 'drain'; readonly minMs: number; readonly maxMs: number }

/** A resource that the worker could not apply. */
export interface WorkerRejection extends Rejection {
  /** Sequence of the change set that contained the resource. */
  readonly sequence: number
}

/** The current state of a worker. */
export interface WorkerState {
  /** Sequence of the last change set that is in force; -1 before the first one. */
  readonly sequence: number
  readonly rejected: readonly WorkerRejection[]
  readonly bound: readonly PortName[]
  /** Ports of listeners that could not be bound. */
  readonly unbound: readonly PortName[]
}

/** Id of metrics that a worker sends without being asked, because it is about to end. */
export const lastMetrics = 0

export type FromWorker =
  | BudgetQuestion
  | AnswerQuestion
  | GrantQuestion
  /** The worker has started. `rateOwners` identify its rate-limit locks, which are released if it dies. */
  | { readonly type: 'started'; readonly rateOwners: readonly number[] }
  | { readonly type: 'state'; readonly state: WorkerState }
  | { readonly type: 'claim'; readonly port: PortName }
  | { readonly type: 'released'; readonly port: PortName }
  | { readonly type: 'metrics'; readonly id: number; readonly snapshot: MetricsSnapshot }
  /** A block of decision records to publish. */
  | { readonly type: 'decisions'; readonly block: Uint8Array; readonly isSample: boolean }
  /** What an MCP server lists. */
  | { readonly type: 'list'; readonly report: ListReport }
  /** Sessions of users that have ended. */
  | { readonly type: 'ended'; readonly report: EndedReport }
  /** An endpoint has become unhealthy, or healthy again. */
  | { readonly type: 'health'; readonly change: HealthChange }
  /** The worker met a bug. */
  | { readonly type: 'fault'; readonly message: string }
  | { readonly type: 'drained' }
