/** What the worker threads of a process know of each other, by locks that end with their thread. */
import * as workerThreads from 'node:worker_threads'

/** Undefined in Node before 24.5. */
const locks: typeof workerThreads.locks | undefined = workerThreads.locks

const lockOf = (name: string): string => `sluice mcp thread ${name}`

/** Makes the name of this thread known to the process, until the thread ends. Resolves when it is known. */
export function nameThread(name: string): Promise<void> {
  if (locks === undefined) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const held = locks.request(lockOf(name), () => {
    resolve()
    return new Promise<never>(() => {})
  })
  // The lock is lost when the thread ends, and nothing has to be done then.
  held.catch(() => {})
  return promise
}

/** Whether there is a thread with this name in the process. Undefined if that cannot be found out. */
export async function isRunning(name: string): Promise<boolean | undefined> {
  if (locks === undefined) return undefined
  const options = { mode: 'shared', ifAvailable: true } as const
  return await locks.request(lockOf(name), options, (lock) => lock === null)
}

/** Resolves when the thread with this name has ended; never if that cannot be found out. */
export function threadEnd(name: string): Promise<void> {
  if (locks === undefined) return new Promise<never>(() => {})
  return locks.request(lockOf(name), { mode: 'shared' }, () => {})
}

/** Runs `work` while no other thread of the process runs work of this name. */
export async function runAlone<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
  if (locks === undefined) return await work()
  return await locks.request(`sluice mcp ${name}`, work)
}

/** A channel to the other threads of the process, which opens when it is first used. */
export class ThreadChannel<Message> {
  readonly #name: string
  readonly #receive: (message: Message) => void
  #channel: workerThreads.BroadcastChannel | undefined

  constructor(name: string, receive: (message: Message) => void) {
    this.#name = `sluice mcp ${name}`
    this.#receive = receive
  }

  open(): workerThreads.BroadcastChannel {
    if (this.#channel !== undefined) return this.#channel
    const channel = new workerThreads.BroadcastChannel(this.#name)
    channel.onmessage = (event) => this.#receive((event as { data: Message }).data)
    channel.unref()
    this.#channel = channel
    return channel
  }

  /** Sends a message to all other threads. */
  post(message: Message): void {
    this.open().postMessage(message)
  }

  /** Sends a message to all threads, this one included, which receives it at once. */
  publish(message: Message): void {
    this.#receive(message)
    this.post(message)
  }

  /** Receives what other threads have posted but was not delivered yet. */
  receivePosted(): void {
    // The types of Node do not say that a BroadcastChannel can be read as well.
    const port = this.open() as unknown as workerThreads.MessagePort
    for (
      let one = workerThreads.receiveMessageOnPort(port);
      one;
      one = workerThreads.receiveMessageOnPort(port)
    ) {
      this.#receive(one.message as Message)
    }
  }
}
