/** Messages between threads of a process about clients' sessions and streams. */
import type { McpMessage } from '../../message.ts'
import type { ClientRecord } from './client-view.ts'

/** A client of the older transport. Its stream is in one thread, but any thread may receive its messages. */
export interface StreamClient {
  readonly backend: string
  readonly principal: string | undefined
  /** Serves messages that another thread has received. Returns false if there are too many. */
  receiveFrom(client: ClientRecord, messages: readonly McpMessage[]): boolean
}

/** Whether the client's stream takes messages: `lost` if no thread has it, or it is another principal's. */
export type Delivery = 'taken' | 'full' | 'lost'

/** Messages for a client whose stream is in another thread. */
export interface PassedMessages {
  readonly id: string
  readonly backend: string
  readonly principal: string | undefined
  readonly texts: readonly string[]
  /** The request that brought the messages. Its credentials authorize them. */
  readonly client: ClientRecord
}

/** A message between threads. */
export type ThreadQuestion =
  /** Asks the thread of this name whether it has the stream of a client. */
  | { readonly wanted: Omit<PassedMessages, 'texts' | 'client'>; readonly at: string }
  | { readonly passed: PassedMessages; readonly at: string }

export type ThreadMessage =
  | { readonly ended: string }
  | (ThreadQuestion & { readonly by: string })
  | { readonly delivery: Delivery; readonly by: string }
