/**
 * Active health checks: sends probes to the endpoints of backends whose policy asks for them. One timer of
 * each worker finds the probes that are due. Which worker sends a probe is decided in shared memory.
 */
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import type { ActiveCheckRules, CheckedHealth } from '../../../ground/exchange/connection.ts'
import type { RequestMaker } from '../request/runtime.ts'
import type { MetricsSnapshot } from '../telemetry/metric-definitions.ts'
import { joinAuthority } from '../upstream/authority.ts'
import type { CheckedBackend, HealthChange } from '../upstream/checked-backend.ts'
import {
  addressText,
  atPort,
  type EndpointSet,
  type UpstreamEndpoint,
} from '../upstream/endpoint.ts'
import {
  type HealthSlot,
  type HealthSlots,
  healthClock,
  isHealthy,
} from '../upstream/health-slots.ts'
import { CheckCounts } from './check-counts.ts'
import { sendProbe } from './probe.ts'

/** Interval at which due probes are looked for. */
const tickMs = 100
/** Maximum number of probes that one worker has under way. */
const maxProbes = 64
/** Maximum random part of an interval, so that probes of several proxies spread. */
const jitter = 0.1

interface CheckOptions {
  readonly engine: RequestMaker
  readonly slots: HealthSlots
  /** Returns random numbers, uniform in [0, 1). */
  readonly random: () => number
  readonly onChange: (change: HealthChange) => void
}

/** One endpoint of a checked backend. */
class CheckedEndpoint implements CheckedHealth {
  readonly address: UpstreamAddress
  readonly slot: HealthSlot
  readonly #endpoint: UpstreamEndpoint
  readonly #rules: ActiveCheckRules
  #wasDown: boolean
  /** Set while this worker waits for the result of a probe. */
  cancel: (() => void) | undefined

  constructor(
    endpoint: UpstreamEndpoint,
    address: UpstreamAddress,
    slot: HealthSlot,
    rules: ActiveCheckRules,
  ) {
    this.#endpoint = endpoint
    this.address = address
    this.slot = slot
    this.#rules = rules
    this.#wasDown = rules.startsUnhealthy === true
  }

  get isDown(): boolean {
    const isDown = !isHealthy(this.slot.state, this.#rules)
    if (this.#wasDown && !isDown) this.#endpoint.returned()
    this.#wasDown = isDown
    return isDown
  }
}

/** A backend with the rules of one policy. */
class CheckedSet {
  backend: CheckedBackend
  readonly rules: ActiveCheckRules
  readonly endpoints = new Map<UpstreamEndpoint, CheckedEndpoint>()
  /** When the next probe is due, by the clock of the slots. */
  nextAt: number
  isFinding = false

  constructor(backend: CheckedBackend, rules: ActiveCheckRules, now: number) {
    this.backend = backend
    this.rules = rules
    this.nextAt = now
  }

  drop(endpoint: UpstreamEndpoint): void {
    this.endpoints.get(endpoint)?.cancel?.()
    this.endpoints.delete(endpoint)
    this.rules.results.delete(endpoint)
  }

  dropAll(): void {
    for (const endpoint of [...this.endpoints.keys()]) this.drop(endpoint)
  }
}

export class ActiveChecks {
  readonly #options: CheckOptions
  readonly #sets = new Map<string, CheckedSet>()
  readonly #counts = new CheckCounts()
  #timer: NodeJS.Timeout | undefined
  #underWay = 0
  #isStopped = false

  constructor(options: CheckOptions) {
    this.#options = options
  }

  /** Replaces the backends that are checked. Those that stay keep their results. */
  set(backends: readonly CheckedBackend[]): void {
    if (this.#isStopped) return
    const now = healthClock()
    const gone = new Set(this.#sets.keys())
    for (const backend of backends) {
      const rules = backend.settings.health?.active
      if (rules === undefined) continue
      const key = keyOf(backend, rules)
      gone.delete(key)
      const before = this.#sets.get(key)
      if (before === undefined) this.#sets.set(key, new CheckedSet(backend, rules, now))
      else before.backend = backend
    }
    for (const key of gone) {
      this.#sets.get(key)?.dropAll()
      this.#sets.delete(key)
    }
    // Endpoints may have changed, and new ones must not wait for the next interval.
    for (const set of this.#sets.values()) set.nextAt = now
    this.#watch()
    this.#tick()
  }

  /** Ends all probes. The last results stay in force. */
  stop(): void {
    this.#isStopped = true
    for (const { endpoints } of this.#sets.values()) {
      for (const { cancel } of endpoints.values()) cancel?.()
    }
    clearInterval(this.#timer)
  }

  metrics(): MetricsSnapshot {
    return this.#counts.snapshot(
      [...this.#sets.values()].map(({ backend, endpoints }) => ({
        backend: backend.label,
        unhealthy: [...endpoints.values()].filter((one) => one.slot.isOwn && one.isDown).length,
      })),
    )
  }

  #watch(): void {
    if (this.#sets.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    } else if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#tick(), tickMs)
      this.#timer.unref()
    }
  }

  #tick(): void {
    const now = healthClock()
    for (const [key, set] of this.#sets) {
      if (this.#underWay >= maxProbes) return
      if (set.isFinding || ((set.nextAt - now) | 0) > 0) continue
      this.#look(set, now)
      // The next tick begins with the others, so that backends without an answer do not use all probes.
      this.#sets.delete(key)
      this.#sets.set(key, set)
    }
  }

  /** Finds the endpoints of a backend, and sends the probes that are due. */
  #look(set: CheckedSet, now: number): void {
    // Without endpoints, the backend is looked at again after an interval.
    set.nextAt = (now + set.rules.intervalMs) | 0
    const found = set.backend.find()
    if (!(found instanceof Promise)) {
      this.#probeAll(set, found, now)
      return
    }
    set.isFinding = true
    found
      .then(
        (endpoints) => {
          const isCurrent = this.#sets.get(keyOf(set.backend, set.rules)) === set
          if (!this.#isStopped && isCurrent) this.#probeAll(set, endpoints, healthClock())
        },
        () => undefined,
      )
      .finally(() => {
        set.isFinding = false
      })
  }

  #probeAll(set: CheckedSet, { all }: EndpointSet, now: number): void {
    const current = new Set(all)
    for (const endpoint of set.endpoints.keys()) if (!current.has(endpoint)) set.drop(endpoint)
    for (const endpoint of all) {
      const checked = this.#checkedOf(set, endpoint, now)
      if (checked === undefined) continue
      if (this.#underWay < maxProbes && checked.cancel === undefined) {
        if (checked.slot.claim(now, this.#interval(set.rules))) this.#probe(set, checked)
      }
      const dueAt = (now + Math.max(checked.slot.dueIn(now), 1)) | 0
      if (((dueAt - set.nextAt) | 0) < 0) set.nextAt = dueAt
    }
  }

  #checkedOf(
    set: CheckedSet,
    endpoint: UpstreamEndpoint,
    now: number,
  ): CheckedEndpoint | undefined {
    const before = set.endpoints.get(endpoint)
    if (before !== undefined && !before.slot.isLost) return before
    const { rules, backend } = set
    const { profiles, host, version } = backend
    const plain = rules.port === undefined ? endpoint.address : atPort(endpoint.address, rules.port)
    const address = profiles.of(host).address(plain, rules.probe.type === 'grpc' ? '2' : version)
    const name = `${rules.identity} ${backend.label} ${addressOf(endpoint)} ${address.pool}`
    const slot = this.#options.slots.of(name, now)
    if (slot === undefined) return undefined
    const checked = new CheckedEndpoint(endpoint, address, slot, rules)
    set.endpoints.set(endpoint, checked)
    rules.results.set(endpoint, checked)
    return checked
  }

  #interval({ intervalMs }: ActiveCheckRules): number {
    return Math.round(intervalMs * (1 + jitter * (2 * this.#options.random() - 1)))
  }

  #probe({ backend, rules }: CheckedSet, checked: CheckedEndpoint): void {
    const { profiles, settings, host, port, label } = backend
    const authority = joinAuthority(host, port, profiles.of(host).scheme)
    const { connectTimeoutMs = 0 } = settings
    const { address } = checked
    this.#underWay++
    const end = () => {
      this.#underWay--
      checked.cancel = undefined
    }
    const cancel = sendProbe(
      this.#options.engine,
      { address, authority, rules, connectTimeoutMs },
      (problem) => {
        end()
        this.#counts.count(label, problem === undefined)
        const { was, is } = checked.slot.record(problem === undefined, rules)
        if (was === is) return
        const endpoint = address.label ?? address.pool
        this.#options.onChange({ backend: label, endpoint, isHealthy: is, problem })
      },
    )
    checked.cancel = () => {
      end()
      cancel()
    }
  }
}

const addressOf = ({ address: { host, port } }: UpstreamEndpoint): string => addressText(host, port)

/** Numbers of rules. Those of several policies may be equal, but requests look for results in their own ones. */
const numbers = new WeakMap<ActiveCheckRules, number>()
let lastNumber = 0

function numberOf(rules: ActiveCheckRules): number {
  const known = numbers.get(rules)
  if (known !== undefined) return known
  numbers.set(rules, ++lastNumber)
  return lastNumber
}

/** Identifies a backend with the rules of a policy. */
function keyOf({ label, settings }: CheckedBackend, rules: ActiveCheckRules): string {
  const { tls, tunnel } = settings
  return [numberOf(rules), label, tls?.identity ?? '', tunnel?.identity ?? ''].join(' ')
}
