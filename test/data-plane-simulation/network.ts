/**
 * Connections of a world: bytes take time, arrive in pieces, and wait in system buffers of a limited size, as with
 * TCP. Each end acts on its own machine.
 */
import type { Random } from '../virtual-time/random.ts'
import type { Machine, World } from '../virtual-time/world.ts'

/** What an end of a connection does with what arrives. */
export interface Receiver {
  /** Bytes are valid during the call only. */
  onBytes(bytes: Buffer): void
  /** The peer sends nothing more. */
  onEnd(): void
  /** The peer has reset the connection. */
  onReset(): void
}

/** A write that the system buffers have not accepted as a whole. */
interface Waiting {
  rest: Uint8Array
  readonly done: (isSent: boolean) => void
}

/** How a connection behaves. */
export interface Line {
  /** Milliseconds from one end to the other. */
  readonly latencyMs: number
  /** Bytes that the system buffers of one direction hold until they have been filled `mostSmallPieces` times. */
  readonly capacity: number
  /** Largest piece in which bytes arrive, for `mostSmallPieces` pieces after `smallAfter` bytes. */
  readonly pieceSize: number
  readonly smallAfter: number
}

/** Before and after so many pieces, bytes arrive as they were sent, so that long bodies do not take a step a byte. */
const mostSmallPieces = 80

/** Most bytes that a process reads at once. */
const readSize = 68 * 1024

/** One direction of a connection. */
class Direction {
  readonly #world: World
  readonly #line: Line
  /** The ends that write and read. */
  readonly from: End
  readonly to: End
  /** Bytes that have arrived and were not read. */
  readonly #arrived: Buffer[] = []
  readonly #waiting: Waiting[] = []
  /** Bytes that were accepted and not read yet. */
  #held = 0
  #lastArrival = 0
  #pieces = 0
  #delivered = 0
  #isDelivering = false
  /** What follows all bytes. */
  #last: 'end' | 'reset' | undefined
  #lastIsSent = false
  #lastHasArrived = false
  isClosed = false

  constructor(world: World, line: Line, from: End, to: End) {
    this.#world = world
    this.#line = line
    this.from = from
    this.to = to
  }

  /** Bytes that the writer still holds, since the system has not accepted them. */
  get waiting(): number {
    return this.#waiting.reduce((sum, { rest }) => sum + rest.length, 0)
  }

  get unread(): number {
    return this.#arrived.reduce((sum, bytes) => sum + bytes.length, 0)
  }

  /** Returns whether the system has accepted all bytes; if not, `done` is called later. */
  write(bytes: Uint8Array, done: (isSent: boolean) => void): boolean {
    if (this.#last !== undefined || this.isClosed) return true
    const accepted = this.#waiting.length > 0 ? 0 : this.#accept(bytes)
    if (accepted === bytes.length) return true
    this.#waiting.push({ rest: bytes.subarray(accepted), done })
    return false
  }

  #accept(bytes: Uint8Array): number {
    const size = Math.min(bytes.length, this.#capacity - this.#held)
    if (size <= 0) return 0
    this.#held += size
    this.from.sent++
    this.to.onSent()
    const copy = Buffer.from(bytes.subarray(0, size))
    this.arriveLater(() => {
      this.#arrived.push(copy)
      this.deliver()
    })
    return size
  }

  /** Sends an end after everything that was written, or a reset at once. */
  finish(kind: 'end' | 'reset'): void {
    if (this.#last === 'reset' || (this.#last === 'end' && kind === 'end')) return
    this.#last = kind
    if (kind === 'reset') this.cancel()
    this.#sendLast()
  }

  /** Drops what the system has not accepted. */
  cancel(): void {
    for (const { done } of this.#waiting.splice(0)) done(false)
  }

  #sendLast(): void {
    if (this.#last === undefined || this.#waiting.length > 0) return
    if (this.#lastIsSent && this.#last === 'end') return
    this.#lastIsSent = true
    this.arriveLater(() => {
      this.#lastHasArrived = true
      this.deliver()
    })
  }

  /** Does something at the reader after all that was sent before has arrived. */
  arriveLater(work: () => void): void {
    const at = Math.max(this.#world.now + this.#line.latencyMs, this.#lastArrival)
    this.#lastArrival = at
    this.#world.schedule(this.to.machine, at - this.#world.now, work)
  }

  /** Passes on what has arrived, one piece a step. */
  deliver(): void {
    if (this.#isDelivering || !this.to.isReading || this.isClosed) return
    const [first] = this.#arrived
    if (first === undefined) {
      if (this.#lastHasArrived) this.#deliverLast()
      return
    }
    const piece = first.subarray(0, this.#nextSize())
    this.#delivered += piece.length
    if (piece.length === first.length) this.#arrived.shift()
    else this.#arrived[0] = first.subarray(piece.length)
    this.#isDelivering = true
    this.from.onRead(piece.length)
    this.to.receiver.onBytes(piece)
    this.#isDelivering = false
    this.#held -= piece.length
    this.#takeWaiting()
    if (this.#arrived.length > 0 || this.#lastHasArrived) {
      this.#world.schedule(this.to.machine, 0, () => this.deliver())
    }
  }

  #deliverLast(): void {
    this.#lastHasArrived = false
    if (this.#last === 'reset') this.to.receiver.onReset()
    else this.to.receiver.onEnd()
  }

  /** Returns the largest size of the next piece. */
  #nextSize(): number {
    const { pieceSize, smallAfter } = this.#line
    if (this.#delivered < smallAfter) return Math.min(smallAfter - this.#delivered, readSize)
    return this.#pieces++ < mostSmallPieces ? pieceSize : readSize
  }

  /** Systems enlarge small buffers of connections that carry much. */
  get #capacity(): number {
    const { capacity } = this.#line
    return this.#delivered < mostSmallPieces * capacity ? capacity : Math.max(capacity, 65_536)
  }

  #takeWaiting(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      const accepted = this.#accept(first.rest)
      first.rest = first.rest.subarray(accepted)
      if (first.rest.length > 0) return
      this.#waiting.shift()
      first.done(true)
    }
    this.#sendLast()
  }

  /** The reader is gone: what was written or will be written is lost. */
  close(): void {
    this.isClosed = true
    this.#arrived.length = 0
  }
}

interface Address {
  readonly host: string
  readonly port: number
}

/** One end of a connection. */
export class End {
  readonly machine: Machine
  readonly local: Address
  readonly remote: Address
  receiver: Receiver = silent
  /** Called when the process of the peer reads bytes that this end has written. */
  onRead: (bytes: number) => void = ignore
  /** Called when the system of the peer has taken bytes to send them to this end. */
  onSent: () => void = ignore
  peer: End | undefined
  /** How often the system has taken bytes of this end. */
  sent = 0
  isReading = false
  isClosed = false
  /** Most bytes that its process held at once, since the system had not accepted them. */
  mostWaiting = 0
  #out: Direction | undefined
  #in: Direction | undefined

  constructor(machine: Machine, local: Address, remote: Address) {
    this.machine = machine
    this.local = local
    this.remote = remote
  }

  /** Connects two ends. */
  static join(world: World, line: Line, one: End, other: End): void {
    const there = new Direction(world, line, one, other)
    const back = new Direction(world, line, other, one)
    ;[one.peer, other.peer] = [other, one]
    ;[one.#out, one.#in, other.#out, other.#in] = [there, back, back, there]
  }

  write(bytes: Uint8Array, done: (isSent: boolean) => void = () => {}): boolean {
    if (this.#out?.isClosed === true) {
      // The peer has closed: its system answers with a reset.
      this.#in?.finish('reset')
      this.sent++
      this.peer?.onSent()
      return true
    }
    const out = this.#out
    if (out === undefined || out.write(bytes, done)) return true
    this.mostWaiting = Math.max(this.mostWaiting, out.waiting)
    return false
  }

  read(): void {
    this.isReading = true
    this.#in?.deliver()
  }

  pause(): void {
    this.isReading = false
  }

  /** Sends nothing more, and still reads. */
  end(): void {
    this.#out?.finish('end')
  }

  /**
   * Sends what the system has accepted and reads nothing more; what waits to be read is answered with a reset.
   */
  close(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#out?.cancel()
    this.#out?.finish((this.#in?.unread ?? 0) > 0 ? 'reset' : 'end')
    this.#leave()
  }

  reset(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#out?.finish('reset')
    this.#leave()
  }

  /** Drops what arrives from now on, and cancels what the peer still writes, once everything sent before has arrived. */
  #leave(): void {
    this.#in?.close()
    this.#out?.arriveLater(() => this.#in?.cancel())
  }
}

const ignore = () => {}
const silent: Receiver = { onBytes: ignore, onEnd: ignore, onReset: ignore }

interface Listener {
  readonly machine: Machine
  readonly accept: (end: End) => void
}

/** All addresses of a world. */
export class Network {
  readonly world: World
  readonly #random: Random
  /** By address; several for workers that share a port. */
  readonly #listening = new Map<string, Listener[]>()
  /** Ends of each machine. */
  readonly #ends = new Map<Machine, Set<End>>()
  #nextPort = 30_000
  /** Makes the behaviour of the next connection. */
  line: (random: Random) => Line = randomLine
  /** Connections that were made. */
  count = 0

  constructor(world: World, random: Random) {
    this.world = world
    this.#random = random
  }

  listen(address: Address, machine: Machine, accept: Listener['accept']): () => void {
    const name = nameOf(address)
    const listener = { machine, accept }
    this.#listening.set(name, [...(this.#listening.get(name) ?? []), listener])
    return () => this.#unlisten((one) => one === listener)
  }

  #unlisten(isOver: (one: Listener) => boolean): void {
    for (const [name, all] of this.#listening) {
      const left = all.filter((one) => !isOver(one))
      if (left.length > 0) this.#listening.set(name, left)
      else this.#listening.delete(name)
    }
  }

  #keep(end: End): void {
    const ends = this.#ends.get(end.machine) ?? new Set()
    this.#ends.set(end.machine, ends.add(end))
  }

  /** How often the system has taken bytes of any end of a machine. */
  writesOf(machine: Machine): number {
    let sum = 0
    for (const { sent } of this.#ends.get(machine) ?? []) sum += sent
    return sum
  }

  /** Most bytes that a connection of a machine held at once to write them. */
  mostWaiting(machine: Machine): number {
    const ends = this.#ends.get(machine) ?? new Set<End>()
    return Math.max(0, ...[...ends].map((end) => end.mostWaiting))
  }

  /** Resets all connections of a machine whose process ends, and frees its addresses. */
  resetAll(machine: Machine): void {
    for (const end of this.#ends.get(machine) ?? []) end.reset()
    this.#ends.delete(machine)
    this.#unlisten((one) => one.machine === machine)
  }

  isTaken(address: Address): boolean {
    return this.#listening.has(nameOf(address))
  }

  /** Begins to connect; the callback gets the end, or undefined if the connection is refused. */
  connect(from: Machine, to: Address, onConnect: (end: End | undefined) => void): void {
    const line = this.line(this.#random)
    const local = {
      host: from.name === 'gateway' ? '10.0.0.1' : '10.0.1.1',
      port: this.#nextPort++,
    }
    this.world.schedule(from, line.latencyMs, () => {
      const all = this.#listening.get(nameOf(to)) ?? []
      // Only a choice takes a random number.
      const found = all.length > 1 ? this.#random.pick(all) : all[0]
      if (found === undefined) {
        onConnect(undefined)
        return
      }
      this.count++
      const near = new End(from, local, to)
      const far = new End(found.machine, to, local)
      End.join(this.world, line, near, far)
      this.#keep(near)
      this.#keep(far)
      this.world.schedule(found.machine, 0, () => found.accept(far))
      onConnect(near)
    })
  }
}

const nameOf = ({ host, port }: Address): string => `${host}:${port}`

const pieceSizes = [1, 2, 3, 7, 16, 64, 1_000, 4_096, 65_536, 65_536, 65_536]
const startsOfSmallPieces = [0, 0, 0, 100, 300, 1_000, 4_000, 20_000]
const capacities = [200, 1_024, 4_096, 16_384, 65_536, 262_144, 262_144]

export const randomLine = (random: Random): Line => ({
  latencyMs: random.chance(0.5) ? 0.1 : random.between(0.1, 20),
  capacity: random.pick(capacities),
  pieceSize: random.pick(pieceSizes),
  smallAfter: random.pick(startsOfSmallPieces),
})
