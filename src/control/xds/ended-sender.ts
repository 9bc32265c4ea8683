/** Sends the sessions and tokens that are refused to proxies: all of them at first, and then what is added. */
import { type EndedEntry, EndedList, maxEndedAtOnce } from '../../ground/model/ended-sessions.ts'
import { encodeEndedResponse, type ProxyNode } from '../wire/discovery.ts'
import type { StreamCall } from './listener.ts'

interface Receiver {
  readonly node: ProxyNode
  readonly call: Pick<StreamCall, 'write'>
}

export class EndedSender {
  readonly #list = new EndedList()

  add(entries: readonly EndedEntry[], receivers: Iterable<Receiver>): void {
    this.#list.add(entries, Date.now())
    for (const receiver of receivers) send(receiver, entries)
  }

  sendAll(receiver: Receiver): void {
    send(receiver, this.#list.all())
  }
}

/** Sends messages of a limited size. Old proxies would take such a message for a change set. */
function send({ node, call }: Receiver, entries: readonly EndedEntry[]): void {
  if (node.takesEnded !== true) return
  for (let from = 0; from < entries.length; from += maxEndedAtOnce) {
    call.write(encodeEndedResponse(entries.slice(from, from + maxEndedAtOnce)))
  }
}
