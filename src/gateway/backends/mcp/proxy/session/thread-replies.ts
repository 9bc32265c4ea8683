/** Replies of other threads to questions of this one. */
import type { EventFields } from '../../event-stream.ts'
import { newId } from '../../ids.ts'
import { readMessage } from '../../message.ts'
import type { ResponseListener } from '../target/response-reader.ts'
import { TargetFailure } from '../target/target-failure.ts'

interface Question<Reply> {
  readonly thread: string
  /** The reply if none comes in time, or if the thread ends. */
  readonly lost: Reply
  readonly timer: NodeJS.Timeout
  onReply(reply: Reply): void
}

export class ThreadReplies<Reply> {
  readonly #questions = new Map<string, Question<Reply>>()

  /**
   * Returns the name of a question, by which replies are received until it is removed. If the first one does not come
   * in time, the reply is `lost`. `thread` is the name of the thread, if it is known.
   */
  expect(limitMs: number, lost: Reply, onReply: (reply: Reply) => void, thread = ''): string {
    const name = newId()
    const timer = setTimeout(() => this.receive(name, lost), limitMs).unref()
    this.#questions.set(name, { thread, lost, timer, onReply })
    return name
  }

  /** Asks a question that has one reply. `send` gets its name. */
  ask(limitMs: number, lost: Reply, send: (name: string) => void, thread = ''): Promise<Reply> {
    return new Promise((resolve) => {
      const onReply = (reply: Reply) => {
        this.delete(name)
        resolve(reply)
      }
      const name = this.expect(limitMs, lost, onReply, thread)
      send(name)
    })
  }

  /** Ignores replies to questions of other threads. */
  receive(name: string, reply: Reply): void {
    const question = this.#questions.get(name)
    clearTimeout(question?.timer)
    question?.onReply(reply)
  }

  /** Called when a thread has ended. */
  lose(thread: string): void {
    for (const [name, question] of [...this.#questions]) {
      if (question.thread === thread) this.receive(name, question.lost)
    }
  }

  /** Removes a question. Returns false if there was none. */
  delete(name: string): boolean {
    clearTimeout(this.#questions.get(name)?.timer)
    return this.#questions.delete(name)
  }
}

/** What a listener in another thread gets. `taken` precedes all; `lost` says that there is nothing to listen to. */
export type ListenerEvent =
  | { readonly kind: 'taken' | 'lost' | 'stream' | 'end' }
  | { readonly kind: 'message'; readonly text: string; readonly fields: EventFields | undefined }
  | { readonly kind: 'failure'; readonly text: string }

/** Makes a listener that sends to another thread what it gets. `onOver` is called with the last event. */
export function forwardingListener(
  send: (event: ListenerEvent) => void,
  onOver: () => void,
): ResponseListener {
  const over = (event: ListenerEvent) => {
    onOver()
    send(event)
  }
  return {
    onStream: () => send({ kind: 'stream' }),
    onMessage: ({ text }, fields) => send({ kind: 'message', text, fields }),
    onEnd: () => over({ kind: 'end' }),
    onFailure: ({ message }) => over({ kind: 'failure', text: message }),
  }
}

/** Passes an event to the listener that it is for. */
export function passEvent(event: ListenerEvent, listener: ResponseListener): void {
  switch (event.kind) {
    case 'stream':
      listener.onStream?.()
      break
    case 'message':
      listener.onMessage?.(readMessage(event.text), event.fields)
      break
    case 'end':
      listener.onEnd()
      break
    case 'failure':
      listener.onFailure(new TargetFailure(event.text))
  }
}

/** Whether this is the last event for a listener. */
export const isLast = ({ kind }: ListenerEvent): boolean =>
  kind === 'end' || kind === 'failure' || kind === 'lost'
