/** Sessions at targets that were begun after the client's session, for all threads of the process. */
import { BroadcastChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import type { TargetSession } from './session-state.ts'
import { runAlone } from './threads.ts'

/** A message between threads: a session that one of them has begun. */
interface Change {
  readonly client: string
  readonly target: string
  readonly session: TargetSession
}

/** Maximum number of clients' sessions of which later sessions are kept. */
const maxClients = 50_000

const isSame = (one: TargetSession, other: TargetSession | undefined): boolean =>
  one.id === other?.id && one.connection === other?.connection

export class TargetSessions {
  /** By client's session and target. */
  readonly #all = new Map<string, Map<string, TargetSession>>()
  readonly #channel = new BroadcastChannel('sluice mcp late sessions')

  constructor() {
    this.#channel.onmessage = (event) => this.#apply((event as { data: Change }).data)
    this.#channel.unref()
  }

  /** `client` is the id of the client's session. */
  find(client: string, target: string): TargetSession | undefined {
    return this.#all.get(client)?.get(target)
  }

  /** Calls `begin` unless another thread has begun a session since `lost` was in use. */
  begin(
    client: string,
    target: string,
    lost: TargetSession | undefined,
    begin: () => Promise<TargetSession>,
  ): Promise<TargetSession> {
    return runAlone(`${client} ${target}`, async () => {
      this.#receive()
      const known = this.find(client, target)
      if (known !== undefined && !isSame(known, lost)) return known
      const session = await begin()
      const change = { client, target, session }
      this.#apply(change)
      this.#channel.postMessage(change satisfies Change)
      return session
    })
  }

  /** Reads what other threads posted before they released the lock, but was not delivered yet. */
  #receive(): void {
    // The types of Node do not say that a BroadcastChannel can be read as well.
    const port = this.#channel as unknown as MessagePort
    for (let one = receiveMessageOnPort(port); one; one = receiveMessageOnPort(port)) {
      this.#apply(one.message as Change)
    }
  }

  #apply({ client, target, session }: Change): void {
    const [oldest] = this.#all.size >= maxClients ? this.#all.keys() : []
    if (oldest !== undefined) this.#all.delete(oldest)
    const targets = this.#all.get(client) ?? new Map<string, TargetSession>()
    this.#all.set(client, targets.set(target, session))
  }

  /** Drops the sessions of a client's session that has ended. */
  forget(client: string): void {
    this.#all.delete(client)
  }
}
