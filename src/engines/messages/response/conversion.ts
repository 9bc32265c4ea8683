/** The contract of conversions of streamed responses, with or without translation. */
import type { OmittedBytes } from '../../../ground/exchange/exchange.ts'
import type { ProviderError, ResponseContext, StreamEvent } from '../chat.ts'
import type { ResponseDetails } from '../common/response-details.ts'
import type { ChatFormat } from '../format.ts'
import type { OutgoingRequest } from '../request/outgoing.ts'
import { clientText, errorInResponse, unreadable } from './provider-error.ts'

export interface ConversionOptions {
  readonly request: OutgoingRequest
  /** The format of the client. */
  readonly format: ChatFormat
  /** Maximum size of an event that is read, in bytes; events that are only passed on may have any size. */
  readonly eventLimit: number
  readonly context: ResponseContext
  /** Called with details about the response. */
  onDetails(details: ResponseDetails): void
  /** Called with the size in bytes of every piece of content: texts, thoughts, arguments of tools. */
  onContent(bytes: number): void
  /** Called with every event that the client gets. */
  readonly onEvent?: ((event: StreamEvent) => void) | undefined
  /** True if guards read the events as bytes. */
  readonly isGuarded?: boolean
  /** True if guards protect the response, so that errors must not quote what guards have not read. */
  readonly isProtected: boolean
}

/** Bytes that the client does not get, and those that it gets instead of them. */
export interface ReplacedBytes extends OmittedBytes {
  readonly replacement: Uint8Array
}

/** Converts events of the provider to events for the client. */
export interface Conversion {
  /** True if the provider has ended the response. */
  readonly hasEnded: boolean
  convert(event: StreamEvent): readonly StreamEvent[]
  /**
   * Handles an event without parsing it, if it is known to differ from an earlier one only in its text. The
   * result says which bytes of it are replaced; undefined if the event must be converted.
   */
  relay?(bytes: Buffer, start: number, end: number, type: string): ReplacedBytes | undefined
  /**
   * Does the same for bytes [start, end) if they are one whole event, with its field names and line ends, of which
   * the client gets nothing else instead.
   */
  relayEvent?(bytes: Buffer, start: number, end: number): OmittedBytes | undefined
  /** `isCut`: whether the provider disconnected too early. `text`: what it sent instead of events. */
  finish(isCut: boolean, text: string): readonly StreamEvent[]
}

export const errorEvents = (
  { format, context }: ConversionOptions,
  error: ProviderError,
): readonly StreamEvent[] => format.writer(context).write({ type: 'error', error })

const cutOff: ProviderError = { status: 502, message: 'the response of the provider was cut off' }

/** Returns true if data comes from a proxy in front of the provider, because providers send JSON. */
export const isPlainText = (data: string): boolean => !/^\s*(?:[[{]|$)/.test(data)

/** Returns the error of a stream without an end. `text` is what the provider sent instead of events. */
export function errorInPlace(
  { request, isProtected }: Pick<ConversionOptions, 'request' | 'isProtected'>,
  text: string,
): ProviderError {
  if (text.trim() === '') return cutOff
  const found = errorInResponse(request, text, undefined, isProtected)
  if (found !== undefined) return found
  const error = unreadable(text)
  return { status: error.status, message: clientText(error, isProtected) }
}
