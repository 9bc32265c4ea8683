/** The messages between the page and the worker that folds the log. */
import type { Models } from './models.ts'

/** Where events come from. */
export type Opening =
  | { readonly from: 'file'; readonly file: Blob; readonly name: string }
  | { readonly from: 'server'; readonly key: string }

export interface LogState {
  /** Name of the file, or of the server. */
  readonly name: string
  /**
   * `reading`: events are listed. `folding`: all are listed, and states of the last ones are not computed yet.
   * `following`: new events appear by themselves.
   */
  readonly state: 'none' | 'reading' | 'folding' | 'ready' | 'following' | 'failed'
  readonly count: number
  /** Number of events whose states are computed, and the position of the last one. */
  readonly folded: number
  readonly foldedTo: number
  /** Number of events whose type, time and object are not known yet. */
  readonly unlisted: number
  /** Whether the log has stored states, so that every moment can be shown soon. */
  readonly hasStates: boolean
  /** Positions and times of the first and the last event; 0 if there is none. */
  readonly first: number
  readonly last: number
  readonly firstMs: number
  readonly lastMs: number
  /** Share of the log that was read or folded, from 0 to 1; undefined if its size is unknown. */
  readonly progress: number | undefined
  /** Short hash of the first event. Links name it, so that they are not opened on another log. */
  readonly identity: string
  /** What a reader should know about the log, such as missing events. */
  readonly notices: readonly string[]
  /** Why nothing more is read; what was read stays. */
  readonly problem: string | undefined
}

export const noLog: LogState = {
  name: '',
  state: 'none',
  count: 0,
  folded: 0,
  foldedTo: 0,
  unlisted: 0,
  hasStates: false,
  first: 0,
  last: 0,
  firstMs: 0,
  lastMs: 0,
  progress: undefined,
  identity: '',
  notices: [],
  problem: undefined,
}

export type ModelName = keyof Models
export type Params<Name extends ModelName> = Parameters<Models[Name]>[1]
export type Answer<Name extends ModelName> = Awaited<ReturnType<Models[Name]>>

export type ToWorker =
  | { readonly type: 'open'; readonly opening: Opening; readonly core: Uint8Array<ArrayBuffer> }
  | {
      readonly type: 'query'
      readonly id: number
      readonly name: ModelName
      /** Position of the moment; the newest one if undefined. */
      readonly position: number | undefined
      readonly params: unknown
    }

export type FromWorker =
  | { readonly type: 'log'; readonly log: LogState }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'failure'; readonly id: number; readonly message: string }
