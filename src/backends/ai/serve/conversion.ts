/** What converting a streamed answer means, natively or by translation. */
import type { ProviderError, StreamEvent } from '../chat.ts'
import { type AnswerContext, type ChatFormat, clientFormats } from '../client-formats.ts'
import type { JsonObject } from '../json.ts'
import { errorInAnswer, unreadable } from './provider-error.ts'
import type { OutgoingRequest } from './request.ts'
import type { AnswerFacts } from './usage.ts'

export interface ConversionOptions {
  readonly request: OutgoingRequest
  /** The body of the client. */
  readonly clientBody: JsonObject
  /** Bytes that one event may have if it is read; others pass whatever their size. */
  readonly eventLimit: number
  readonly context: AnswerContext
  /** Called for whatever is learned on the way. */
  onFacts(facts: AnswerFacts): void
  /** Called with every piece of the answer's content: texts, thoughts, arguments of tools. */
  onContent(piece: string): void
  /** Called with every event that the client gets, where somebody wants to know what it says. */
  readonly onEvent?: ((event: StreamEvent) => void) | undefined
}

/** Events of the provider -> events of the client. */
export interface Conversion {
  /** The provider has said that the answer is complete. */
  readonly hasEnded: boolean
  convert(event: StreamEvent): readonly StreamEvent[]
  /**
   * `isCut`: the provider has gone in the middle. `text`: what came in place of events.
   */
  finish(isCut: boolean, text: string): readonly StreamEvent[]
}

export function errorEvents(
  format: ChatFormat,
  error: ProviderError,
  context: AnswerContext,
): readonly StreamEvent[] {
  return clientFormats[format].writer({}, context).write({ type: 'error', error })
}

const cutOff: ProviderError = { status: 502, message: 'the answer of the provider was cut off' }

/** No event of any provider looks so, but pages of what stands before them do. */
export const isPlainText = (data: string): boolean => !/^\s*(?:[[{]|$)/.test(data)

/** Why a stream has no end. `text`: what came in place of events. */
export function errorInPlace(request: OutgoingRequest, text: string): ProviderError {
  if (text.trim() === '') return cutOff
  const { status, message } = unreadable(text)
  return errorInAnswer(request, text) ?? { status, message }
}
