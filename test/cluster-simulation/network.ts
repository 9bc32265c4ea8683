/**
 * The network between machines. Messages of one connection arrive in order, those of different
 * connections in any order. A cut holds messages back, since TCP repeats them, until a connection is
 * given up; a crash ends all connections of a machine.
 */
import type { Random } from '../virtual-time/random.ts'
import type { Machine, World } from '../virtual-time/world.ts'

/** How long a connection survives without an answer, by its keepalive. */
const keepaliveMs = 20_000

const pairOf = (a: Machine, b: Machine) =>
  a.name < b.name ? `${a.name}-${b.name}` : `${b.name}-${a.name}`

/** One direction of a connection. */
class Channel {
  readonly #network: Network
  readonly #from: Machine
  readonly #to: Machine
  #lastAt = 0
  readonly #held: (() => void)[] = []

  constructor(network: Network, from: Machine, to: Machine) {
    this.#network = network
    this.#from = from
    this.#to = to
  }

  send(work: () => void): void {
    const { world } = this.#network
    if (this.#network.isCut(this.#from, this.#to)) {
      this.#held.push(work)
      return
    }
    const earliest = world.now + this.#network.delayMs(this.#from, this.#to)
    // Never at the time of the message before: sums of times are rounded, and might change places.
    this.#lastAt = Math.max(this.#lastAt + 0.001, earliest)
    world.schedule(this.#to, this.#lastAt - world.now, work)
  }

  release(): void {
    for (const work of this.#held.splice(0)) this.send(work)
  }
}

/** A connection of two machines. */
export class Connection {
  readonly ends: readonly [Machine, Machine]
  readonly #network: Network
  readonly #channels: readonly [Channel, Channel]
  readonly #onEnd = new Map<Machine, (why: string) => void>()
  isOpen = true

  constructor(network: Network, from: Machine, to: Machine) {
    this.#network = network
    this.ends = [from, to]
    this.#channels = [new Channel(network, to, from), new Channel(network, from, to)]
  }

  /** Delivers to one of both ends, unless the connection ends before. */
  send(to: Machine, work: () => void): void {
    if (!this.isOpen) return
    this.#channels[this.ends.indexOf(to)]?.send(() => {
      if (this.isOpen) work()
    })
  }

  /** Sets what one end does when the connection has ended without its doing. */
  onEnd(end: Machine, work: (why: string) => void): void {
    this.#onEnd.set(end, work)
  }

  release(): void {
    for (const channel of this.#channels) channel.release()
  }

  /** Ends the connection. Both ends learn of it, except the machine that closes it. */
  end(why: string, by?: Machine): void {
    if (!this.isOpen) return
    this.isOpen = false
    this.#network.forget(this)
    const { world } = this.#network
    for (const end of this.ends) {
      const work = this.#onEnd.get(end)
      if (end === by || work === undefined) continue
      const other = end === this.ends[0] ? this.ends[1] : this.ends[0]
      const late = this.#network.isCut(end, other) ? keepaliveMs : 0
      world.schedule(end, late + this.#network.delayMs(end, other), () => work(why))
    }
  }
}

export class Network {
  readonly world: World
  /** How much longer messages take than usual. */
  slowness = 1
  /** Probability that a request fails without any effect, and that its answer is lost. */
  loss = 0
  readonly #random: Random
  readonly #cuts = new Map<string, number>()
  readonly #connections = new Set<Connection>()
  /** Requests and answers that wait for the end of a cut. */
  #held: { readonly pair: string; readonly work: () => void }[] = []

  constructor(world: World, random: Random) {
    this.world = world
    this.#random = random
  }

  isCut(a: Machine, b: Machine): boolean {
    return this.#cuts.has(pairOf(a, b))
  }

  delayMs(_from: Machine, _to: Machine): number {
    const usual = this.#random.between(0.2, 3)
    const rare = this.#random.chance(0.02) ? this.#random.between(10, 200) : 0
    return (usual + rare) * this.slowness
  }

  connect(from: Machine, to: Machine): Connection {
    const connection = new Connection(this, from, to)
    this.#connections.add(connection)
    return connection
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection)
  }

  cut(a: Machine, b: Machine): void {
    const pair = pairOf(a, b)
    if (this.#cuts.has(pair)) return
    const since = this.world.now
    this.#cuts.set(pair, since)
    // The machine whose step this is does not matter: the network itself acts.
    this.world.schedule(this.world.outside, keepaliveMs, () => {
      if (this.#cuts.get(pair) !== since) return
      for (const connection of this.#between(pair)) connection.end('keepalive timed out')
    })
  }

  heal(a: Machine, b: Machine): void {
    const pair = pairOf(a, b)
    if (!this.#cuts.delete(pair)) return
    for (const connection of this.#between(pair)) connection.release()
    const held = this.#held
    this.#held = held.filter((one) => one.pair !== pair)
    for (const one of held) if (one.pair === pair) one.work()
  }

  /** Ends all connections of a machine, or those between two. */
  disconnect(machine: Machine, why: string, other?: Machine): void {
    for (const connection of [...this.#connections]) {
      if (!connection.ends.includes(machine)) continue
      if (other !== undefined && !connection.ends.includes(other)) continue
      connection.end(why)
    }
  }

  /**
   * Sends a request and its answer, each of which can be lost. `answer` is called at most once; callers
   * need a timeout.
   */
  request<Result>(
    from: Machine,
    to: Machine,
    handle: (reply: (result: Result) => void) => void,
    answer: (result: Result | undefined) => void,
  ): void {
    const { world } = this
    const isLost = this.#random.chance(this.loss)
    const isAnswerLost = this.#random.chance(this.loss)
    const { run } = from
    // An answer to an earlier run of the machine must not wake what has crashed.
    const arrive = (result: Result | undefined, delayMs: number) => {
      if (from.run === run) world.schedule(from, delayMs, () => answer(result))
    }
    if (isLost) {
      arrive(undefined, this.delayMs(to, from))
      return
    }
    this.#pass(from, to, () => {
      if (!to.isUp) {
        arrive(undefined, 1)
        return
      }
      world.schedule(to, 0, () =>
        handle((result) => {
          if (isAnswerLost) arrive(undefined, this.delayMs(to, from))
          else this.#pass(to, from, () => arrive(result, 0))
        }),
      )
    })
  }

  /** Calls `work` when a message has arrived, which can take until the end of a cut, or forever. */
  #pass(from: Machine, to: Machine, work: () => void): void {
    if (this.isCut(from, to)) {
      const retry = () => this.#pass(from, to, work)
      if (this.#random.chance(0.5)) this.#held.push({ pair: pairOf(from, to), work: retry })
      return
    }
    this.world.schedule(this.world.outside, this.delayMs(from, to), work)
  }

  #between(pair: string): Connection[] {
    return [...this.#connections].filter(({ ends: [a, b] }) => pairOf(a, b) === pair)
  }
}
