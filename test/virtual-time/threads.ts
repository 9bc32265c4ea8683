/** Locks and channels between worker threads, for the threads of a world, which all run in this one. */
import { syncBuiltinESMExports } from 'node:module'
import workerThreads from 'node:worker_threads'
import type { Machine, World } from './world.ts'

/** What the threads of one world share. */
interface Shared {
  readonly channels: Map<string, Set<VirtualChannel>>
  /** The last holder of each exclusive lock, which later ones wait for. */
  readonly locks: Map<string, Promise<unknown>>
}

const worlds = new WeakMap<World, Shared>()

let here: () => World = () => {
  throw new Error('there is no world')
}

function shared(): Shared {
  const world = here()
  let found = worlds.get(world)
  if (found === undefined) {
    found = { channels: new Map(), locks: new Map() }
    worlds.set(world, found)
  }
  return found
}

/** A BroadcastChannel: what one posts, the others with its name in the same world receive in a later step. */
class VirtualChannel {
  onmessage: ((event: { readonly data: unknown }) => void) | undefined
  readonly #machine: Machine = here().current
  readonly #others: Set<VirtualChannel>
  readonly #posted: unknown[] = []

  constructor(name: string) {
    const { channels } = shared()
    const all = channels.get(name) ?? new Set()
    this.#others = all.add(this)
    channels.set(name, all)
  }

  postMessage(message: unknown): void {
    for (const other of this.#others) if (other !== this) other.#receive(structuredClone(message))
  }

  #receive(message: unknown): void {
    this.#posted.push(message)
    here().schedule(this.#machine, 0, () => {
      const next = this.take()
      if (next !== undefined) this.onmessage?.({ data: next.message })
    })
  }

  /** Returns the first message that was not delivered yet. */
  take(): { readonly message: unknown } | undefined {
    return this.#posted.length === 0 ? undefined : { message: this.#posted.shift() }
  }

  close(): void {
    this.#others.delete(this)
  }

  ref(): void {}

  unref(): void {}
}

interface LockOptions {
  readonly ifAvailable?: boolean
}
type Locked = (lock: object | null) => unknown

/** Exclusive locks. A lock that is asked for only if it is available is one that no thread of a world holds. */
async function request(name: string, ...rest: [Locked] | [LockOptions, Locked]): Promise<unknown> {
  const work = rest.length === 1 ? rest[0] : rest[1]
  const { locks } = shared()
  const before = locks.get(name)
  const isAsked = rest.length === 2 && rest[0].ifAvailable === true
  if (isAsked) return work(before === undefined ? {} : null)
  const own = (before ?? Promise.resolve()).then(
    () => work({}),
    () => work({}),
  )
  locks.set(name, own)
  try {
    return await own
  } finally {
    if (locks.get(name) === own) locks.delete(name)
  }
}

/** Replaces those of the process. `world` returns the world that the process is in. */
export function shareThreads(world: () => World): void {
  here = world
  const replaced = {
    BroadcastChannel: VirtualChannel,
    receiveMessageOnPort: (channel: VirtualChannel) => channel.take(),
    locks: { request },
  }
  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(workerThreads, name, { value, configurable: true, enumerable: true })
  }
  syncBuiltinESMExports()
}
