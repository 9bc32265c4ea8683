/** Reads the outcome of a request from its response, without delaying or changing any byte. */
import { SseReader } from '../../../../engines/sse/reader.ts'
import { GrowingBytes } from '../../../../ground/base/growing-bytes.ts'
import { isObject, type JsonObject } from '../../../../ground/base/json-object.ts'
import type { BodyTransform, OmittedBytes } from '../../../../ground/exchange/exchange.ts'

type TaskState =
  | 'submitted'
  | 'working'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'input_required'
  | 'rejected'
  | 'auth_required'
  | 'unknown'

/** The result as far as it is known; for a stream, that of its last event. */
export interface A2aOutcome {
  readonly kind?: 'task' | 'message' | 'status-update' | 'artifact-update'
  readonly state?: TaskState
  readonly taskId?: string
  readonly contextId?: string
  /** Code of the JSON-RPC error. */
  readonly errorCode?: number
}

const states: ReadonlySet<string> = new Set([
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'input_required',
  'rejected',
  'auth_required',
] satisfies TaskState[])

const isState = (text: string): text is TaskState => states.has(text)

/** Version 0.3 writes `input-required`, version 1.0 `TASK_STATE_INPUT_REQUIRED`. */
function stateOf(value: unknown): TaskState | undefined {
  if (typeof value !== 'string') return undefined
  const text = value
    .replace(/^TASK_STATE_/, '')
    .toLowerCase()
    .replaceAll('-', '_')
  return isState(text) ? text : 'unknown'
}

const memberOf = (value: unknown, name: string): JsonObject | undefined => {
  const member = isObject(value) ? value[name] : undefined
  return isObject(member) ? member : undefined
}

/** Members of results of version 1.0 by the kind of the result. */
const kinds = [
  ['task', 'task'],
  ['message', 'message'],
  ['statusUpdate', 'status-update'],
  ['artifactUpdate', 'artifact-update'],
] as const

/** Returns what a response or an event says. */
function outcomeOf(value: unknown): A2aOutcome {
  if (!isObject(value)) return {}
  const code = memberOf(value, 'error')?.code
  if (typeof code === 'number') return { errorCode: code }
  const result = memberOf(value, 'result') ?? value
  for (const [name, kind] of kinds) {
    const member = memberOf(result, name)
    if (member !== undefined) return detailsOf(member, kind)
  }
  const own = kinds.find(([, kind]) => kind === result.kind)?.[1]
  const isTask = memberOf(result, 'status') !== undefined && typeof result.id === 'string'
  const kind = own ?? (isTask ? 'task' : undefined)
  return kind === undefined ? {} : detailsOf(result, kind)
}

function detailsOf(result: JsonObject, kind: NonNullable<A2aOutcome['kind']>): A2aOutcome {
  const taskId = kind === 'task' ? result.id : result.taskId
  const { contextId } = result
  const state = stateOf(memberOf(result, 'status')?.state)
  return {
    kind,
    ...(state !== undefined && { state }),
    ...(typeof taskId === 'string' && { taskId }),
    ...(typeof contextId === 'string' && { contextId }),
  }
}

/** Maximum size of a response, or of an event, that is read. */
const maxRead = 262_144
const nothing: OmittedBytes = { cutStart: 0, cutEnd: 0 }

/** A transform that changes nothing. `onOutcome` is called for each event, or at the end of a whole response. */
export class OutcomeReader implements BodyTransform {
  readonly #onOutcome: (outcome: A2aOutcome) => void
  readonly #events: SseReader | undefined
  readonly #whole = new GrowingBytes()
  #size = 0

  constructor(isStream: boolean, onOutcome: (outcome: A2aOutcome) => void) {
    this.#onOutcome = onOutcome
    this.#events = isStream ? new SseReader(maxRead, 'skip') : undefined
  }

  relay(bytes: Buffer, start: number, end: number): OmittedBytes {
    this.#read(bytes.subarray(start, end))
    return nothing
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    this.#read(chunk)
    emit(chunk)
  }

  end(): void {
    if (this.#events === undefined && this.#size <= maxRead)
      this.#report(this.#whole.content.toString())
  }

  #read(chunk: Uint8Array): void {
    if (this.#events !== undefined) {
      this.#events.push(chunk, ({ data }) => {
        if (data !== undefined) this.#report(data)
      })
      return
    }
    this.#size += chunk.length
    if (this.#size <= maxRead) this.#whole.add(chunk, 0, chunk.length)
  }

  #report(text: string): void {
    try {
      this.#onOutcome(outcomeOf(JSON.parse(text)))
    } catch {
      // The outcome of a response that is not JSON is unknown.
    }
  }
}
