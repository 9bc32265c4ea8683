/** Serves the calls of policies over HTTP/1.1 on one connection of a world. */
import type { Random } from '../../virtual-time/random.ts'
import type { World } from '../../virtual-time/world.ts'
import { linesOf } from '../exchange.ts'
import { type Field, type Message, MessageReader } from '../http1-reader.ts'
import type { Server } from '../http1-upstream.ts'
import type { End } from '../network.ts'

/** What a service answers to one call. */
export interface ServiceReply {
  readonly delayMs: number
  readonly status: number
  readonly fields: readonly Field[]
  readonly body: string
  /** `cut`: the connection ends inside of the body. */
  readonly fault: 'none' | 'silence' | 'reset' | 'cut'
  /** Called right before the reply is sent. */
  onSend(): void
}

export interface HttpServiceOwner {
  readonly world: World
  readonly random: Random
  /** Returns undefined if the call belongs to no exchange. */
  onCall(message: Message): ServiceReply | undefined
  fail(text: string): void
}

export class HttpService {
  readonly #server: Server
  readonly #end: End
  readonly #owner: HttpServiceOwner
  #isOver = false

  constructor(server: Server, end: End, owner: HttpServiceOwner) {
    this.#server = server
    this.#end = end
    this.#owner = owner
    const reader = new MessageReader(
      'request',
      { onHead: () => {}, onComplete: (message) => this.#answer(message) },
      () => '',
    )
    end.receiver = {
      onBytes: (bytes) => {
        try {
          if (!this.#isOver) reader.push(bytes)
        } catch (error) {
          owner.fail(`${server.name} cannot read what the gateway sends: ${error}`)
        }
      },
      onEnd: () => this.#leave(false),
      onReset: () => this.#leave(false),
    }
  }

  #answer(message: Message): void {
    const { world, onCall } = this.#owner
    const reply = onCall(message)
    if (reply === undefined) {
      this.#owner.fail(`${this.#server.name} gets a call of no exchange: ${message.startLine}`)
      return
    }
    const { fault, status, fields, body } = reply
    world.note(`${this.#server.name} gets ${message.startLine}: ${status}, ${fault}`)
    if (fault === 'silence') return
    const lines = linesOf([...fields, ['Content-Length', String(Buffer.byteLength(body))]])
    const isHead = message.startLine.startsWith('HEAD ')
    const sent = isHead ? '' : body
    const whole = Buffer.from(`HTTP/1.1 ${status} Some Reason\r\n${lines}\r\n${sent}`)
    world.schedule(this.#server.machine, reply.delayMs, () => {
      if (this.#isOver) return
      if (fault === 'reset') {
        this.#leave(true)
        return
      }
      if (fault === 'none') reply.onSend()
      const size = fault === 'cut' ? whole.length - 1 - (sent.length >> 1) : whole.length
      this.#end.write(whole.subarray(0, size))
      if (fault === 'cut') this.#leave(false)
    })
  }

  #leave(isReset: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    if (isReset) this.#end.reset()
    else this.#end.close()
    this.#server.open--
  }
}
