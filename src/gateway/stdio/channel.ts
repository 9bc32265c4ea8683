/**
 * The messages of one process. Requests of several clients get ids and progress tokens of their own, and responses and
 * notifications find back to the request.
 */
import { type Edit, member, rawOf, splice, textOf } from '../backends/mcp/json/node.ts'
import { codes, errorText, notificationText, resultText } from '../backends/mcp/json-rpc.ts'
import {
  idIn,
  type McpMessage,
  type McpNotification,
  type McpRequest,
  type McpResponse,
  MessageRefusal,
  readMessage,
  withId,
} from '../backends/mcp/message.ts'
import { metaKeys } from '../backends/mcp/meta-keys.ts'
import type { ServerProcess } from './server-process.ts'

/** Where the messages for a request go. */
export interface Sink {
  /** A message before the response. */
  message(text: string): void
  end(response: string): void
}

interface Pending {
  readonly sink: Sink
  /** The id that the client has given, as JSON. */
  readonly id: string
  readonly progressToken: string | undefined
  /** Who has sent it, for cancellations. */
  readonly owner: unknown
  readonly deadline: number
}

/** Messages that belong to no request of a client. */
interface Unsolicited {
  onNotification(message: McpNotification, latest: Sink | undefined): void
  onRequest(message: McpRequest, latest: Sink | undefined): void
}

/** Maximum number of lines in a row that are no messages. */
const maxNoise = 100
/** Maximum number of messages in a period that no client has asked for. */
const maxUnsolicited = 2_000
const periodMs = 10_000
/** Maximum number of requests that wait for the server. */
const maxPending = 1_000

export class Channel {
  readonly #process: Pick<ServerProcess, 'write' | 'end'>
  readonly #timeoutMs: number
  readonly #others: Unsolicited
  readonly #log: (text: string) => void
  readonly #pending = new Map<number, Pending>()
  #next = 1
  #noise = 0
  #noiseSinceAnswer = 0
  #unsolicited = 0
  #periodEnd = 0
  #ended: string | undefined
  /** Whether the server has answered a request. */
  hasAnswered = false
  /** Whether one of its answers was a result. */
  hasResult = false

  constructor(
    process: Pick<ServerProcess, 'write' | 'end'>,
    timeoutMs: number,
    others: Unsolicited,
    log: (text: string) => void,
  ) {
    this.#process = process
    this.#timeoutMs = timeoutMs
    this.#others = others
    this.#log = log
  }

  get isIdle(): boolean {
    return this.#pending.size === 0
  }

  /** Sends a request. Returns the key by which it can be cancelled. */
  request(message: McpRequest, sink: Sink, owner: unknown): number {
    const { id, text, params, method } = message
    const key = this.#next++
    if (this.#ended !== undefined) {
      sink.end(errorText(id, codes.internal, `the server ${this.#ended}`))
      return key
    }
    if (this.#pending.size >= maxPending) {
      const why = `the server already has ${maxPending} pending requests`
      sink.end(errorText(id, codes.internal, why))
      return key
    }
    const token = member(member(params, '_meta'), 'progressToken')
    const hasNoEnd = method === 'subscriptions/listen'
    this.#pending.set(key, {
      sink,
      id,
      owner,
      progressToken: token && rawOf(text, token),
      deadline: hasNoEnd ? Number.POSITIVE_INFINITY : performance.now() + this.#timeoutMs,
    })
    const edits: Edit[] = []
    for (const node of [idIn(text), token]) {
      if (node !== undefined) edits.push({ start: node.start, end: node.end, text: `${key}` })
    }
    this.#process.write(
      oneLine(
        splice(
          text,
          edits.sort((a, b) => a.start - b.start),
        ),
      ),
    )
    return key
  }

  /** Sends a notification or a response as it is. */
  send(text: string): void {
    this.#process.write(oneLine(text))
  }

  /** Cancels the request with this id of its owner. */
  cancelOf(owner: unknown, id: string, reason: string | undefined): void {
    for (const [key, pending] of this.#pending) {
      if (pending.owner === owner && pending.id === id) this.cancel(key, reason)
    }
  }

  /** Notifies the server that the request was cancelled. */
  cancel(key: number, reason?: string): void {
    if (!this.#pending.delete(key)) return
    const params = JSON.stringify({ requestId: key, ...(reason !== undefined && { reason }) })
    this.#process.write(notificationText('notifications/cancelled', params))
  }

  /** Receives a line of the server. */
  receive(line: Buffer): void {
    if (line.length === 0 || (line.length === 1 && line[0] === 0x0d)) return
    let message: McpMessage
    try {
      message = readMessage(line.toString())
    } catch (error) {
      if (!(error instanceof MessageRefusal)) throw error
      this.#refuse(line, error.message)
      return
    }
    this.#noise = 0
    if (message.kind === 'response') this.#answer(message)
    else if (message.kind === 'request') {
      if (this.#isQuiet()) this.#others.onRequest(message, this.#latest())
    } else this.#notified(message)
  }

  #refuse(line: Buffer, why: string): void {
    this.#noiseSinceAnswer++
    if (this.#noise === 0) {
      this.#log(
        `a line of standard output is not an MCP message (${why}): ${line.toString('utf8', 0, 200)}`,
      )
    }
    if (++this.#noise >= maxNoise) {
      this.#process.end(`wrote ${maxNoise} lines in a row that are not MCP messages`)
    }
  }

  #answer(response: McpResponse): void {
    const key = Number(response.id)
    const pending = this.#pending.get(key)
    if (pending === undefined) return
    this.#pending.delete(key)
    this.hasAnswered = true
    if (response.error === undefined) this.hasResult = true
    this.#noiseSinceAnswer = 0
    pending.sink.end(oneLine(withId(response, pending.id)))
  }

  #notified(message: McpNotification): void {
    const { text, params, method } = message
    const isProgress = method === 'notifications/progress'
    const meta = member(params, '_meta')
    const node = isProgress ? member(params, 'progressToken') : member(meta, metaKeys.subscription)
    const pending = node && this.#pending.get(Number(rawOf(text, node)))
    if (node === undefined || pending === undefined) {
      if (this.#isQuiet() && !isProgress) this.#others.onNotification(message, this.#latest())
      return
    }
    const own = isProgress ? pending.progressToken : pending.id
    if (own === undefined) return
    pending.sink.message(oneLine(splice(text, [{ start: node.start, end: node.end, text: own }])))
  }

  /** Returns false, and ends the server, if it floods its clients. */
  #isQuiet(): boolean {
    const now = performance.now()
    if (now >= this.#periodEnd) {
      this.#periodEnd = now + periodMs
      this.#unsolicited = 0
    }
    if (++this.#unsolicited <= maxUnsolicited) return true
    this.#process.end(`sent ${maxUnsolicited} unrequested messages in ${periodMs / 1_000} s`)
    return false
  }

  /** The request that was sent last, to which messages belong that name none. */
  #latest(): Sink | undefined {
    let last: Pending | undefined
    for (const pending of this.#pending.values()) last = pending
    return last?.sink
  }

  /** Ends requests that wait for too long. Called from time to time. */
  sweep(now: number): void {
    for (const [key, { deadline, sink, id }] of this.#pending) {
      if (deadline > now) {
        if (deadline === Number.POSITIVE_INFINITY) continue
        // The others were sent later.
        return
      }
      this.cancel(key, 'timeout')
      const lines = this.#noiseSinceAnswer
      const noise = lines === 0 ? '' : `; ${lines} lines of its output are no MCP messages`
      const why = `the server did not respond within ${this.#timeoutMs / 1_000} s${noise}`
      sink.end(errorText(id, codes.internal, why))
    }
  }

  /** Answers all requests with an error, because the process has ended. */
  close(reason: string): void {
    this.#ended = reason
    const all = [...this.#pending.values()]
    this.#pending.clear()
    for (const { sink, id } of all) sink.end(errorText(id, codes.internal, `the server ${reason}`))
  }

  /** Answers a request of the server itself. */
  respondTo({ id, method }: McpRequest): void {
    const text =
      method === 'ping'
        ? resultText(id, '{}')
        : errorText(id, codes.methodNotFound, 'The client does not support this request')
    this.#process.write(text)
  }
}

/** A message is one line in both directions: JSON may have line breaks as white space only. */
const oneLine = (text: string): string =>
  /[\r\n]/.test(text) ? text.replaceAll(/[\r\n]+/g, ' ') : text

/** Returns the id that a cancellation names, as JSON. */
export function cancelledId({ text, params }: McpNotification): string | undefined {
  const node = member(params, 'requestId')
  if (node === undefined) return undefined
  const value = textOf(text, node)
  return value === undefined ? rawOf(text, node) : JSON.stringify(value)
}
