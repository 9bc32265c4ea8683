/** Responses that are a text in place of a conversation: guards read them whole, and usage is read while they pass. */
import { detailsOfResponse } from '../../../../engines/messages/common/response-details.ts'
import type { ClientFormat, Transcript } from '../../../../engines/messages/format.ts'
import {
  isObject,
  type JsonObject,
  parseJson,
  stringAt,
} from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import { otherResponse } from '../../../../engines/messages/mask/message-forms.ts'
import { SseReader } from '../../../../engines/sse/reader.ts'
import type {
  BodyTransform,
  RespondVerdict,
  ResponseHead,
} from '../../../../ground/exchange/exchange.ts'
import type { ModelCall } from './model-call.ts'
import { guardText } from './response-guards.ts'

const isEventStream = ({ headers }: ResponseHead): boolean =>
  /^text\/event-stream\s*(;|$)/i.test(headers.get('content-type') ?? '')

/** What the client gets; undefined for what the provider has sent. */
interface Guarded {
  readonly body?: Buffer
  readonly refusal?: RespondVerdict
}

/** Runs the guards on a response that has arrived whole. @throws LlmError 502 if they cannot read it */
export async function guardTranscript(
  call: ModelCall,
  response: ResponseHead,
  transcript: Transcript,
  text: string,
): Promise<Guarded> {
  const form = formOf(response)
  const found = read(form, transcript, text)
  if (found === undefined) throw new LlmError(502, otherResponse)
  const format = call.outgoing?.format
  if (format !== undefined) call.addDetails(detailsOfResponse(format, found))
  const [whole = '', ...pieces] = transcript.texts(found)
  const { text: changed, refusal } = await guardText(call, whole, pieces)
  if (refusal !== undefined) return { refusal }
  if (changed === undefined) return {}
  const body = transcript.withText(found, changed)
  return { body: Buffer.from(written(form, transcript, body)) }
}

type Form = 'events' | 'json' | 'text'

function formOf(response: ResponseHead): Form {
  if (isEventStream(response)) return 'events'
  return /json/i.test(response.headers.get('content-type') ?? '') ? 'json' : 'text'
}

function read(form: Form, transcript: Transcript, text: string): JsonObject | undefined {
  if (form === 'text') return { text }
  if (form === 'events') return joinEvents(transcript, text)
  const parsed = parseJson(text)
  return isObject(parsed) && stringAt(parsed, 'text') !== undefined ? parsed : undefined
}

function joinEvents(transcript: Transcript, text: string): JsonObject | undefined {
  const events: JsonObject[] = []
  let isKnown = true
  const bytes = Buffer.from(text)
  new SseReader(bytes.length + 1, 'fail').push(bytes, ({ data }) => {
    const event = data === undefined ? undefined : parseJson(data)
    if (isObject(event)) events.push(event)
    else if (data !== undefined && data !== '[DONE]') isKnown = false
  })
  return isKnown ? transcript.joinEvents(events) : undefined
}

function written(form: Form, transcript: Transcript, body: JsonObject): string {
  if (form === 'text') return stringAt(body, 'text') ?? ''
  if (form === 'json') return JSON.stringify(body)
  return transcript
    .eventsOf(body)
    .map((event) => `data: ${JSON.stringify(event)}\n\n`)
    .join('')
}

/** Maximum size of an event whose usage is read; larger ones, such as those with images, are read up to it. */
const maxEvent = 32 * 1024 * 1024

/** Reads the usage in the events of a stream that is no conversation. */
class UsageInEvents implements BodyTransform {
  readonly #call: ModelCall
  readonly #format: ClientFormat
  readonly #reader = new SseReader(
    maxEvent,
    'skip',
    (bytes, start, end) => !bytes.subarray(start, end).includes('"usage"'),
  )

  constructor(call: ModelCall, format: ClientFormat) {
    this.#call = call
    this.#format = format
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    this.#reader.push(chunk, ({ data }) => {
      const event = data === undefined ? undefined : parseJson(data)
      if (isObject(event)) this.#call.addDetails(detailsOfResponse(this.#format, event))
    })
    emit(chunk)
  }

  end(): void {
    // An unfinished event has no usage.
  }
}

/** Reads the usage in a stream of events while it passes, unless it is compressed. */
export function watchUsage(call: ModelCall): undefined {
  const { outgoing, context } = call
  const { response, responseBody } = context.exchange
  if (outgoing === undefined || response === undefined || responseBody === undefined) return
  const isRead = isEventStream(response) && response.headers.get('content-encoding') === undefined
  if (isRead) responseBody.through(new UsageInEvents(call, outgoing.format))
}
