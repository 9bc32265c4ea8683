/**
 * The stages of a response of a model. Streams run them for each event, other responses once, all in this order:
 *
 * 1. **decode**, because the others read events or an object. Bytes that have the form of the event before them are
 *    not parsed (`EventTemplate`).
 * 2. **note** model, usage and content, as the provider sent them: what follows may change or remove them.
 * 3. **correct** what deviates from the format, and hide usage that only the gateway asked for; only if the provider
 *    has the client's format. Events without a deviation keep their bytes.
 * 4. **translate** otherwise: from the provider's format to the common form, and on to the client's.
 * 5. **mask** in the client's format, so that guards need no format of a provider and read what the client will.
 *    Omitted without guards.
 * 6. **encode**: writes events or an object that a stage has changed. Everything else passes on as it came.
 *
 * `Conversion` runs stages 2 to 4. `ModelResponseStream` runs all on a stream that is passing; `convertEvents` runs
 * those before the masks on one that is held for guards; `readWholeResponse` runs them on any other response.
 */
import { appendAll } from '../../../ground/base/append-all.ts'
import type { EventDecoder, StreamEvent } from '../chat.ts'
import type { Framing } from '../format.ts'
import { ChunkDecoder } from '../framing/chunks.ts'
import { EventStreamDecoder } from '../framing/event-stream.ts'
import { SseDecoder } from '../framing/sse.ts'
import type { OutgoingRequest } from '../request/outgoing.ts'
import type { Conversion, ConversionOptions } from './conversion.ts'
import { NativeConversion } from './native-conversion.ts'
import { TranslatedConversion } from './translated-conversion.ts'

/** Returns the client's events for a streamed response that has arrived as a whole. @throws LlmError 502 if it cannot be read. */
export function convertEvents(options: ConversionOptions, bytes: Uint8Array): StreamEvent[] {
  const decoder = decoderOf(options)
  const conversion = conversionOf(options)
  const converted: StreamEvent[] = []
  const convert = (event: StreamEvent) => appendAll(converted, conversion.convert(event))
  decoder.push(bytes, convert)
  const { missingEnd } = decoder
  if (missingEnd !== undefined) decoder.push(missingEnd, convert)
  const text = converted.length === 0 ? openingOf(options.request, bytes) : ''
  return [...converted, ...conversion.finish(isCutOff(decoder, conversion), text)]
}

/** Returns how the provider frames the events. */
export const providerFraming = ({ plan, translation }: OutgoingRequest): Framing =>
  translation?.framing ?? (plan.kind === 'native' ? plan.framing : undefined) ?? 'sse'

export function decoderOf({
  request,
  eventLimit,
}: Pick<ConversionOptions, 'request' | 'eventLimit'>): EventDecoder {
  switch (providerFraming(request)) {
    case 'event-stream':
      return new EventStreamDecoder(eventLimit)
    case 'chunks':
      return new ChunkDecoder(eventLimit)
    default:
      return new SseDecoder(eventLimit)
  }
}

/** Maximum number of bytes to keep of a response without events. */
export const openingBytes = 4_096

/** Returns the text that came instead of events; empty if an event began. */
export function openingOf(request: OutgoingRequest, bytes: Uint8Array): string {
  if (providerFraming(request) !== 'sse') return ''
  const text = Buffer.from(bytes.subarray(0, openingBytes)).toString('utf8')
  return /^\s*(?:data|event|id|retry)?:/.test(text) ? '' : text
}

/** Returns true if the bytes ended inside an event before the response was complete. */
export const isCutOff = (
  decoder: Pick<EventDecoder, 'isInside'>,
  conversion: Conversion,
): boolean => decoder.isInside && !conversion.hasEnded

export function conversionOf(options: ConversionOptions): Conversion {
  const { translation } = options.request
  return translation === undefined
    ? new NativeConversion(options)
    : new TranslatedConversion(translation.reader(), options)
}
