/** Messages among the workers of a proxy about sessions: which were renewed, and which were signed out. */
import { BroadcastChannel } from 'node:worker_threads'

export type WorkerMessage = {
  /** Identifies the sessions that the message is about. */
  readonly topic: string
} & (
  | {
      readonly type: 'renewed'
      /** Digest of the old session. */
      readonly key: string
      /** The sealed session that replaces it; undefined if there is none. */
      readonly value: string | undefined
    }
  | { readonly type: 'failed'; readonly key: string }
  | {
      readonly type: 'signedOut'
      /** Whether the user or a logout token says so, or only a frame. */
      readonly source: 'proven' | 'frame'
      readonly name: string
      readonly at: number
      readonly until: number
    }
  /** Asks the other workers for their lists of signed-out sessions. */
  | { readonly type: 'started' }
)

let channel: BroadcastChannel | undefined
const receivers = new Map<string, (message: WorkerMessage) => void>()

function open(): BroadcastChannel {
  const opened = new BroadcastChannel('sluice sign-in')
  opened.onmessage = (event) => {
    const { data } = event as { readonly data: WorkerMessage }
    receivers.get(data.topic)?.(data)
  }
  // Does not keep the thread alive.
  opened.unref()
  return opened
}

/** Receives the messages about a topic from other workers, as long as the process runs. */
export function receiveMessages(topic: string, receive: (message: WorkerMessage) => void): void {
  channel ??= open()
  receivers.set(topic, receive)
}

/** Sends to the other workers, but not to this one. */
export function sendMessage(message: WorkerMessage): void {
  channel?.postMessage(message)
}
