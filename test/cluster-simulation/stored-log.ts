/** Reads a log as a stream stores it, by rules of its own. */
import { decodeEvent } from '../../src/control/log/encode.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { parseFrame } from '../../src/control/log/nats-frames.ts'
import type { StoredMessage } from './nats-server.ts'

export class StoredLog {
  #last = 0
  #open: { readonly batch: string; readonly messages: StoredMessage[] } | undefined

  get position(): number {
    return this.#last
  }

  /** Takes the next message of the stream. Returns the events that it makes part of the log. */
  take(message: StoredMessage): Recorded[] {
    const frame = parseFrame(message.headers)
    if (frame === undefined) return []
    const open = this.#open
    if (open?.batch === frame.batch && frame.index === open.messages.length + 1) {
      open.messages.push(message)
    } else {
      const follows = frame.index === 1 && frame.base === this.#last
      this.#open = follows ? { batch: frame.batch, messages: [message] } : undefined
    }
    const messages = this.#open?.messages ?? []
    if (messages.length !== frame.count) return []
    this.#open = undefined
    return this.#commit(messages)
  }

  #commit(messages: readonly StoredMessage[]): Recorded[] {
    const recorded: Recorded[] = []
    let parts: Uint8Array[] = []
    for (const { headers, data } of messages) {
      const event = parseFrame(headers)?.event
      if (event === undefined) continue
      parts.push(data)
      if (event.part < event.parts) continue
      const one = decodeEvent(++this.#last, Buffer.concat(parts).toString())
      parts = []
      recorded.push(one)
    }
    return recorded
  }
}
