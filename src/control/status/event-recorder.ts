/**
 * Writes Kubernetes Events, which `kubectl describe` shows. Nothing depends on them: a write that fails is
 * reported once and not repeated, and no event waits for another replica.
 *
 * The same event about the same object becomes a series with a count, as in client-go. So that a flapping
 * object or a change of many objects does not flood the API server, the events of each object are limited, and
 * writes are spread over time.
 */
import { hash, randomBytes } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import { systemClock } from '../../ground/base/clock.ts'
import { Fifo } from '../../ground/base/fifo.ts'
import { controllerName } from '../../ground/model/api-names.ts'
import { type KubeClient, KubeError } from '../kube/index.ts'
import { onlyChanges } from './only-changes.ts'

interface EventRecorderOptions {
  readonly client: Pick<KubeClient, 'apply'>
  /** Name of this replica. */
  readonly replica: string
  /** Whether this replica may write now; called before every write. */
  readonly isWriting: () => boolean
  readonly onNotice: (text: string) => void
}

/** An event about an object. Its fields are those of events.k8s.io/v1. */
export interface ObjectEvent {
  readonly regarding: {
    readonly apiVersion: string
    readonly kind: string
    /** Empty for cluster-scoped objects. */
    readonly namespace: string
    readonly name: string
    readonly uid: string
  }
  readonly type: 'Normal' | 'Warning'
  /** What the controller did or tried. */
  readonly action: string
  readonly reason: string
  readonly note: string
}

/** Longest note that Kubernetes accepts. */
const maxNoteBytes = 1024
/** Longest part of an event's name that the name of the object takes. */
const maxNameLength = 230
/** An event that repeats within this time after the last one continues its series. */
const seriesMs = 6 * 60_000
/** Events with one reason that an object may have at once, and the time after which it may have one more. */
const burst = 25
const refillMs = 5 * 60_000
/** Shortest time between two writes. */
const intervalMs = 50
/** Maximum number of events that wait to be written; further ones are dropped. */
const maxWaiting = 1000
/** Maximum number of series and of budgets that are remembered. */
const maxRemembered = 2000

interface Series {
  readonly name: string
  readonly eventTime: string
  readonly count: number
  readonly lastMs: number
}

export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #waiting = new Fifo<ObjectEvent>()
  /** The current series of each event, by a digest of its fields. */
  readonly #series = new Map<string, Series>()
  /** Events that each object may still have with each reason, and since when. */
  readonly #budgets = new Map<string, { readonly left: number; readonly atMs: number }>()
  #draining: Promise<void> | undefined
  readonly #closing = new AbortController()
  /** Reports a problem only once. */
  readonly #report: (problem: string) => void

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#report = onlyChanges(options.onNotice)
  }

  /** Writes an event soon, unless its object has had too many with this reason. */
  record(event: ObjectEvent): void {
    if (this.#closing.signal.aborted || !this.#options.isWriting()) return
    if (!this.#isWithinBudget(event)) return
    if (this.#waiting.length >= maxWaiting) {
      this.#report(`dropped Kubernetes Events: more than ${maxWaiting} wait to be written`)
      return
    }
    this.#waiting.push(event)
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined
    })
  }

  /** Drops the events that are not written yet. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#draining
  }

  async #drain(): Promise<void> {
    const { signal } = this.#closing
    for (let event = this.#waiting.take(); event; event = this.#waiting.take()) {
      if (signal.aborted) return
      if (this.#options.isWriting()) await this.#write(event)
      await after(intervalMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  async #write(event: ObjectEvent): Promise<void> {
    const { type, action, reason, regarding } = event
    const series = this.#nextOf(event)
    const { name, eventTime, count, lastMs } = series
    const namespace = regarding.namespace || 'default'
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events/${name}`
    try {
      await this.#options.client.apply(path, {
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace },
        ...{ type, action, reason, eventTime },
        note: truncated(event.note),
        regarding: { ...regarding, namespace: regarding.namespace || undefined },
        reportingController: controllerName,
        reportingInstance: this.#options.replica.slice(0, 128),
        ...(count > 1 && { series: { count, lastObservedTime: microTime(lastMs) } }),
      })
      this.#report('')
    } catch (error) {
      const problem = error instanceof KubeError ? error.message : String(error)
      this.#report(`cannot write Kubernetes Events: ${problem}`)
    }
  }

  /** Continues the series of an event, or begins one. */
  #nextOf({ regarding, ...fields }: ObjectEvent): Series {
    const nowMs = systemClock.now()
    const key = hash(
      'sha256',
      JSON.stringify([regarding.uid, fields.type, fields.action, fields.reason, fields.note]),
      'base64',
    )
    const known = this.#series.get(key)
    const isOver = known === undefined || nowMs - known.lastMs > seriesMs
    const series = isOver
      ? {
          name: `${regarding.name.slice(0, maxNameLength)}.${randomBytes(8).toString('hex')}`,
          eventTime: microTime(nowMs),
          count: 1,
          lastMs: nowMs,
        }
      : { ...known, count: known.count + 1, lastMs: nowMs }
    remember(this.#series, key, series)
    return series
  }

  #isWithinBudget({ regarding, reason }: ObjectEvent): boolean {
    const key = `${regarding.uid} ${reason}`
    const nowMs = systemClock.now()
    const { left, atMs } = this.#budgets.get(key) ?? { left: burst, atMs: nowMs }
    const refilled = Math.floor((nowMs - atMs) / refillMs)
    const available = Math.min(burst, left + refilled)
    if (available === 0) return false
    remember(this.#budgets, key, { left: available - 1, atMs: atMs + refilled * refillMs })
    return true
  }
}

/** Sets an entry, and forgets the one that was not set for the longest time if there are too many. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > maxRemembered && oldest !== undefined) map.delete(oldest)
}

/** metav1.MicroTime has six digits after the point. */
const microTime = (timeMs: number): string => new Date(timeMs).toISOString().replace('Z', '000Z')

function truncated(note: string): string {
  const bytes = Buffer.from(note)
  if (bytes.length <= maxNoteBytes) return note
  return `${new TextDecoder().decode(bytes.subarray(0, maxNoteBytes - 6), { stream: true })}…`
}
