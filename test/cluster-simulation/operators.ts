/** Operators, who pin and freeze the configuration, approve or reject changes, and decide about rollouts, as the
 * commands do. */
import {
  changeApproved,
  changeRejected,
  pinLifted,
  pinSet,
  rolloutEnded,
  rolloutPaused,
  rolloutResumed,
  type SluiceEvent,
} from '../../events/index.ts'
import { isHeldKind } from '../../src/control/actors/pin.ts'
import type { Position } from '../../src/control/log/index.ts'
import { openNatsLog } from '../../src/control/log/nats.ts'
import { newEvent } from '../../src/control/log/new-event.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { objectKey } from '../../src/ground/model/names.ts'
import { createFold, type Fold, type FoldSnapshot } from '../../src/past/replay/index.ts'
import { differenceOf } from '../../src/tools/cli/rollback/rollback.ts'
import { Random } from '../virtual-time/random.ts'
import { Machine } from '../virtual-time/world.ts'
import type { Cluster } from './cluster.ts'
import { NatsLink } from './nats-link.ts'

const about = { reason: 'simulated', author: 'operator' }
const writer = { source: '/sluice/operator', epoch: 0 }
const subject = { kind: 'Desired', name: 'operator' }

export class Operators {
  readonly #cluster: Cluster
  readonly #random: Random
  readonly #machine = new Machine('operator')
  /** Earlier states to which operators roll back. */
  readonly #states: FoldSnapshot[] = []
  /** The states to which they have rolled back, by the ids of the events. */
  readonly targets = new Map<string, Fold>()
  #count = 0
  #isBusy = false

  constructor(cluster: Cluster, random: Random) {
    this.#cluster = cluster
    this.#random = random
  }

  /** Takes one decision. */
  act(): void {
    const random = this.#random
    const { fold } = this.#cluster.checks.reference
    const held = [...fold.changes.held.values()].filter(({ rejected }) => rejected === undefined)
    const [state] = this.#states.length > 0 ? [random.pick(this.#states)] : []
    if (fold.pin === undefined && random.chance(0.3)) this.#states.push(fold.snapshot())
    const draw = random.between(0, 1)
    if (fold.pin !== undefined && random.chance(0.3)) this.#append(this.#lift())
    else if (draw < 0.12) this.#append(this.#freeze())
    else if (draw < 0.24 && state !== undefined) this.#append(this.#rollBack(state))
    else if (held.length > 0) {
      const { position } = random.pick(held)
      this.#append(random.chance(0.7) ? this.#approve(position) : this.#reject(position))
    } else if (fold.rollouts.rollouts.size > 0 && random.chance(0.5)) {
      this.#append(this.#rollout(random.pick([...fold.rollouts.rollouts.keys()])))
    } else if (random.chance(0.05)) this.#append(this.#approve())
  }

  /** Pauses, resumes, takes back or finishes a rollout. */
  #rollout(rollout: number): SluiceEvent {
    const id = this.#id()
    const data = { rollout, ...about }
    const outcome = this.#random.chance(0.5) ? 'RolledBack' : 'Finished'
    return this.#random.pick([
      newEvent(rolloutPaused, writer, subject, { id, data }),
      newEvent(rolloutResumed, writer, subject, { id, data }),
      newEvent(rolloutEnded, writer, subject, { id, data: { ...data, outcome } }),
    ])
  }

  /** Puts everything in force that waits, until a time. */
  settle(endMs: number): void {
    const { world, checks } = this.#cluster
    const { fold } = checks.reference
    // Nothing may be written shortly before everything is compared.
    if (world.now >= endMs - 30_000) return
    // A pin with an end is lifted by the leader.
    if (fold.pin !== undefined) {
      const endsSoon = Date.parse(fold.pin.until ?? '') < world.wallMs() + 30_000
      if (!endsSoon) this.#append(this.#lift())
    } else if (fold.changes.waiting.size + fold.rollouts.waiting.size > 0) {
      this.#append(this.#approve())
    }
    world.schedule(world.outside, 1_000, () => this.settle(endMs))
  }

  #id(): string {
    return `operator:${++this.#count}`
  }

  #lift(): SluiceEvent {
    return newEvent(pinLifted, writer, subject, { id: this.#id(), data: about })
  }

  #approve(held?: number): SluiceEvent {
    const data = { ...(held === undefined ? { emergency: true as const } : { held }), ...about }
    return newEvent(changeApproved, writer, subject, { id: this.#id(), data })
  }

  #reject(held: number): SluiceEvent {
    return newEvent(changeRejected, writer, subject, { id: this.#id(), data: { held, ...about } })
  }

  /** Holds what is in force, or a part of it that never was. */
  #freeze(): SluiceEvent {
    const { fold } = this.#cluster.checks.reference
    const states = [...fold.graph.objects()].filter(({ ref }) => isHeldKind(ref.kind))
    states.sort((a, b) => (objectKey(a.ref) < objectKey(b.ref) ? -1 : 1))
    const objects = states
      .filter(({ ref }) => ref.kind === 'HTTPRoute' && this.#random.chance(0.3))
      .map(({ ref }) => ref)
    const data = { to: fold.position, objects, ...this.#until(), ...about }
    return newEvent(pinSet, writer, subject, { id: this.#id(), data })
  }

  /** Puts an earlier state in force. */
  #rollBack(state: FoldSnapshot): SluiceEvent {
    const now = this.#cluster.checks.reference.fold
    const target = createFold({ checkRegex: regexProblem }, structuredClone(state))
    const { objects } = differenceOf({ target, now }, undefined)
    const id = this.#id()
    this.targets.set(id, target)
    const data = { to: target.position, objects, ...this.#until(), ...about }
    return newEvent(pinSet, writer, subject, { id, data })
  }

  /** Returns the time at which the leader lifts the pin, for some of the pins. */
  #until(): { readonly until?: string } {
    if (this.#random.chance(0.6)) return {}
    const { world } = this.#cluster
    const endMs = world.wallMs() + this.#random.between(2_000, 28_000)
    return { until: new Date(endMs).toISOString() }
  }

  /** Appends at the position of the state that was looked at. A conflict or a fault leaves the decision out. */
  #append(event: SluiceEvent): void {
    const { world, checks, nats, network } = this.#cluster
    if (this.#isBusy) return
    this.#isBusy = true
    const expectedVersion = checks.reference.position as Position
    world.schedule(this.#machine, 0, async () => {
      const random = new Random(world.seed, `operator ${this.#count}`)
      const link = new NatsLink(this.#machine, nats, network, random)
      try {
        const log = await openNatsLog({
          servers: 'nats',
          patienceMs: 5_000,
          create: false,
          connect: async () => link.asLink(),
        })
        await log.append([event], { expectedVersion })
        await log.close()
      } catch (error) {
        world.note(`operator: ${String(error)}`)
      } finally {
        this.#isBusy = false
      }
    })
  }
}
