/**
 * Handles the messages to a worker. Change sets are handled one at a time: each is decoded and applied, its
 * ports are bound, and the new state is reported. An invalid change set never ends the worker. It reports
 * the resources that it could not apply.
 */

import type { ConfigUpdate, Rejection } from '../../../control/wire/channel.ts'
import { type DecodedDelta, decodeDelta } from '../../../control/wire/decode.ts'
import type { Engine } from '../../../engines/http/engine.ts'
import type { TicketKeyring } from '../../../engines/http/tls/session-tickets.ts'
import { catalogWith } from '../../../engines/messages/catalog/shipped.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { DesiredDelta, ResourceKey } from '../../../ground/model/resources.ts'
import { receiveGrant } from '../../consent/store.ts'
import { refused } from '../../tokens/refused.ts'
import { receiveAnswer } from '../asked-answers.ts'
import type { WorkerBudgets } from '../budgets/worker-budgets.ts'
import type { DataPlane } from '../data-plane.ts'
import type { AccessLog } from '../telemetry/access-log.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import type { WorkerRecords } from './decision-records.ts'
import { ListenerPorts } from './listener-ports.ts'
import type { WorkerTelemetry } from './telemetry.ts'
import {
  type FromWorker,
  lastMetrics,
  type PortName,
  type ToWorker,
  type WorkerRejection,
} from './worker-messages.ts'

interface WorkerParts {
  readonly engine: Engine
  readonly plane: DataPlane
  readonly telemetry: WorkerTelemetry
  readonly tickets: TicketKeyring
  readonly log: AccessLog
  readonly records: WorkerRecords | undefined
  readonly budgets: WorkerBudgets
  readonly send: (message: FromWorker) => void
}

export class WorkerSession {
  readonly #parts: WorkerParts
  readonly #ports: ListenerPorts
  readonly #rejected = new Map<ResourceKey, WorkerRejection>()
  readonly #claims = new Map<PortName, PromiseWithResolvers<void>>()
  #sequence: number | undefined
  /** Sequence of the first state, also for rejections from its parts that had none yet. */
  #firstSequence = 0
  /** Whether a part of the first state could not be read. Without it, nothing may be served. */
  #isIncomplete = false
  #queue: Promise<void> = Promise.resolve()

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.#ports = new ListenerPorts({
      engine: parts.engine,
      settings: parts.plane.portSettings,
      chooseTls: parts.plane.chooseTls,
      claim: (port) => this.#claim(port),
      release: (port) => parts.send({ type: 'released', port }),
      onChange: () => this.#report(),
    })
  }

  receive(message: ToWorker): void {
    switch (message.type) {
      case 'config':
        this.#enqueue(() => this.#configure(message))
        break
      case 'claimed':
        this.#claimed(message.port, message.problem)
        break
      case 'budgets':
      case 'budget-account':
      case 'budget-window':
        this.#parts.budgets.receive(message)
        break
      case 'tickets':
        this.#parts.tickets.secrets = message.secrets
        break
      case 'catalogs':
        this.#parts.plane.catalog = catalogWith(message.catalogs).catalog
        break
      case 'answer':
        receiveAnswer(message)
        break
      case 'grant':
        receiveGrant(message)
        break
      case 'ended':
        refused.add(message.entries, Date.now())
        break
      case 'scrape': {
        const snapshot = this.#snapshot()
        this.#parts.send({ type: 'metrics', id: message.id, snapshot })
        break
      }
      case 'flush':
        this.#parts.log.flushSync()
        Atomics.add(message.gate, 0, 1)
        Atomics.notify(message.gate, 0)
        break
      case 'drain':
        this.#drain(message.minMs, message.maxMs).catch((error) => this.#fault('drain', error))
        break
    }
  }

  #snapshot(): MetricsSnapshot {
    const { telemetry, engine } = this.#parts
    const snapshot = telemetry.snapshot(engine.counters, engine.streamCounters, engine.poolStates())
    const { records, budgets, plane } = this.#parts
    const others = { ...records?.metrics(), ...budgets.metrics(), ...plane.upstreamMetrics() }
    return { ...snapshot, ...others }
  }

  #enqueue(work: () => Promise<void>): void {
    this.#queue = this.#queue.then(work).catch((error) => this.#fault('configuration', error))
  }

  /** Reports a trap of the core and the last metrics. Called before the worker ends. */
  trapped(trap: Error): void {
    this.#fault('core', trap)
    const { telemetry, engine, send } = this.#parts
    const counters = { ...engine.counters, coreTraps: 1 }
    const snapshot = telemetry.snapshot(counters, engine.streamCounters)
    send({ type: 'metrics', id: lastMetrics, snapshot })
  }

  #fault(what: string, error: unknown): void {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    this.#parts.send({ type: 'fault', message: `${what}: ${text}` })
  }

  async #configure({ sequence, position, bytes, base, isPart }: ConfigUpdate): Promise<void> {
    if (this.#isIncomplete) return
    if (base !== undefined) await this.#take(sequence, base)
    const isTaken = await this.#take(sequence, bytes, isPart)
    if (isPart && isTaken) return
    if (isPart) this.#isIncomplete = true
    else if (isTaken) {
      this.#sequence = sequence
      this.#firstSequence ||= sequence
      this.#parts.plane.position = position ?? sequence
    }
    this.#report()
  }

  /** Applies a change set. Returns false if the bytes are not a change set. */
  async #take(sequence: number, bytes: Uint8Array, isPart = false): Promise<boolean> {
    const delta = this.#read(sequence, bytes)
    if (delta === undefined) return false
    for (const key of delta.removed) this.#rejected.delete(key)
    for (const { resource } of delta.upserted) this.#rejected.delete(resource.key)
    for (const problem of delta.unreadable) this.#reject(sequence, problem)
    for (const rejection of this.#apply(delta)) this.#reject(sequence, rejection)
    await this.#ports.update(delta, isPart)
    return true
  }

  #reject(sequence: number, { key, code, message }: Rejection): void {
    this.#rejected.set(key, { key, code, message, sequence })
  }

  #read(sequence: number, bytes: Uint8Array): DecodedDelta | undefined {
    try {
      return decodeDelta(bytes)
    } catch (error) {
      const { code, message } = new GatewayError('resource_unreadable', `change set ${sequence}`)
      this.#reject(sequence, { key: '', code, message })
      this.#fault(`change set ${sequence} cannot be read`, error)
      return undefined
    }
  }

  /** Applies a change set. If that throws, applies its resources one by one to find the invalid one. */
  #apply(delta: DesiredDelta): readonly Rejection[] {
    const { plane } = this.#parts
    try {
      return plane.apply(delta).rejected
    } catch (error) {
      this.#fault(`change set ${delta.sequence}`, error)
    }
    const { sequence } = delta
    const parts: DesiredDelta[] = [
      { sequence, upserted: [], removed: delta.removed },
      ...delta.upserted.map((one) => ({ sequence, upserted: [one], removed: [] })),
    ]
    return parts.flatMap((part): readonly Rejection[] => {
      try {
        return plane.apply(part).rejected
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error)
        const key = part.upserted[0]?.resource.key ?? ''
        return [{ key, code: 'bug', message }]
      }
    })
  }

  #report(): void {
    const rejected = new Map<ResourceKey, WorkerRejection>(this.#rejected)
    for (const rejection of this.#ports.rejections()) rejected.set(rejection.key, rejection)
    const sequence = this.#sequence ?? -1
    for (const { policy, message } of this.#parts.plane.portConflicts()) {
      const { key } = policy
      if (!rejected.has(key)) rejected.set(key, { key, sequence, code: 'port_shared', message })
    }
    const state = {
      sequence,
      rejected: [...rejected.values()].map((rejection) => ({
        ...rejection,
        sequence: Math.max(rejection.sequence, this.#firstSequence),
      })),
      bound: this.#ports.bound(),
      unbound: this.#ports.unbound(),
    }
    this.#parts.send({ type: 'state', state })
  }

  #claim(port: PortName): Promise<void> {
    const claim = Promise.withResolvers<void>()
    this.#claims.set(port, claim)
    this.#parts.send({ type: 'claim', port })
    return claim.promise
  }

  #claimed(port: PortName, problem: string | undefined): void {
    const waiter = this.#claims.get(port)
    this.#claims.delete(port)
    if (problem === undefined) waiter?.resolve()
    else waiter?.reject(new GatewayError('port_in_use', undefined, new Error(problem)))
  }

  async #drain(minMs: number, maxMs: number): Promise<void> {
    this.#ports.stop()
    try {
      this.#parts.plane.stop()
      await this.#parts.engine.drain(minMs, maxMs)
      await this.#parts.plane.flush()
    } finally {
      await this.#parts.records?.close()
      await this.#parts.log.close()
      this.#parts.send({ type: 'metrics', id: lastMetrics, snapshot: this.#snapshot() })
      this.#parts.send({ type: 'drained' })
    }
  }
}
