/** The client of the model of the API server: everything above the sockets is the client of production. */
import {
  KubeClient,
  KubeError,
  type KubeObject,
  type KubernetesCluster,
} from '../../src/control/kube/index.ts'
import type { Machine } from '../virtual-time/world.ts'
import type { ApiServer, WatchMessage } from './api-server.ts'
import type { Network } from './network.ts'

type Options = NonNullable<Parameters<KubeClient['request']>[2]>
type WatchArguments = Parameters<KubeClient['watch']>

const defaultTimeoutMs = 30_000
/** A watch without data for this long is dead, as in production. */
const silenceMs = 150_000

export class SimulatedKubeClient extends KubeClient {
  readonly #machine: Machine
  readonly #server: ApiServer
  readonly #network: Network

  constructor(machine: Machine, server: ApiServer, network: Network) {
    super({ namespace: 'sluice-system' } as KubernetesCluster)
    this.#machine = machine
    this.#server = server
    this.#network = network
  }

  override request<T>(method: string, path: string, options: Options = {}): Promise<T> {
    const { query = {}, body, accept = '', signal, timeoutMs = defaultTimeoutMs } = options
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const abort = () => reject(new KubeError(0, '', 'the request was aborted'))
    if (signal?.aborted) abort()
    signal?.addEventListener('abort', abort, { once: true })
    const timer = setTimeout(
      () => reject(new KubeError(0, 'Timeout', `no answer within ${timeoutMs} ms`)),
      timeoutMs,
    )
    // The JSON of the request is what arrives.
    const sent = body === undefined ? undefined : JSON.parse(JSON.stringify(body))
    const call = { method, path, query, body: sent, by: this.#machine.name }
    this.#network.request<() => T>(
      this.#machine,
      this.#server.machine,
      (reply) => reply(outcomeOf(() => narrowed(accept, this.#server.handle(call)) as T)),
      (outcome) => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        try {
          if (outcome === undefined) throw new KubeError(0, '', 'socket hang up')
          resolve(outcome())
        } catch (error) {
          reject(error)
        }
      },
    )
    return promise
  }

  override async *watch(
    path: WatchArguments[0],
    query: WatchArguments[1],
    signal: WatchArguments[2],
    { accept = '', onOpen }: WatchArguments[3] = {},
  ): ReturnType<KubeClient['watch']> {
    const inbox = new Inbox()
    const end = this.#openWatch(path, query, inbox)
    const abort = () => inbox.put({ type: 'ERROR', error: new KubeError(0, '', 'aborted') })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    try {
      for (;;) {
        const message = await inbox.take()
        if (message === 'open') onOpen?.()
        else if (message.type === 'END') return
        else if (message.type === 'ERROR') throw message.error
        else yield { type: message.type, object: narrowed(accept, message.object) as KubeObject }
      }
    } finally {
      signal.removeEventListener('abort', abort)
      end()
    }
  }

  #openWatch(path: string, query: WatchArguments[1], inbox: Inbox): () => void {
    const [here, there] = [this.#machine, this.#server.machine]
    const connection = this.#network.connect(here, there)
    const broken = () =>
      inbox.put({ type: 'ERROR', error: new KubeError(0, '', 'the connection broke') })
    let silence = setTimeout(broken, silenceMs)
    let close: () => void = () => undefined
    const receive = (message: WatchMessage | 'open') => {
      clearTimeout(silence)
      silence = setTimeout(broken, silenceMs)
      inbox.put(message)
    }
    const send = (message: WatchMessage | 'open') => connection.send(here, () => receive(message))
    connection.onEnd(here, broken)
    connection.onEnd(there, () => close())
    if (there.isUp) {
      connection.send(there, () => {
        try {
          close = this.#server.watch(path, query, send)
          send('open')
        } catch (error) {
          send({ type: 'ERROR', error: error as KubeError })
        }
      })
      const lastsMs = Number(query.timeoutSeconds ?? 300) * 1_000
      const over = setTimeout(() => inbox.put({ type: 'END' }), lastsMs)
      return () => {
        clearTimeout(silence)
        clearTimeout(over)
        connection.end('closed', here)
        close()
      }
    }
    connection.end('refused')
    return () => clearTimeout(silence)
  }
}

/** Messages that have arrived and wait to be taken. */
class Inbox {
  readonly #messages: (WatchMessage | 'open')[] = []
  #wake: (() => void) | undefined

  put(message: WatchMessage | 'open'): void {
    this.#messages.push(message)
    this.#wake?.()
  }

  async take(): Promise<WatchMessage | 'open'> {
    for (;;) {
      const message = this.#messages.shift()
      if (message !== undefined) return message
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

/** Runs `work` now; the returned function returns its result, or throws its error. */
function outcomeOf<T>(work: () => T): () => T {
  try {
    const result = work()
    return () => result
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** Reduces objects to their metadata if only that was asked for. */
function narrowed(accept: string, result: unknown): unknown {
  if (!accept.includes('PartialObjectMetadata')) return result
  const only = ({ metadata }: KubeObject) => ({ metadata })
  const { items } = result as { items?: readonly KubeObject[] }
  return items === undefined
    ? only(result as KubeObject)
    : { ...(result as object), items: items.map(only) }
}
