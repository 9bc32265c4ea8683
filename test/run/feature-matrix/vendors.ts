/** Models of each vendor, and how its simulator words an answer. */
import { respondsSegments } from '../../support/vendors/response-segments.ts'
import {
  completesSegments,
  conversesSegments,
  type Ending,
  generatesSegments,
  invokesSegments,
  type Segment,
  saysSegments,
} from '../../support/vendors/segments.ts'
import { type Answer, openStream, sendEvent } from '../../support/vendors/vendor.ts'
import { errorA, failsA } from '../../support/vendors/vendor-a.ts'
import { failsC } from '../../support/vendors/vendor-c.ts'
import { errorD, failsD } from '../../support/vendors/vendor-d.ts'
import { failsF, frame, openFrames } from '../../support/vendors/vendor-f.ts'

export interface Wording {
  says(segments: readonly Segment[], ending: Ending): Answer
  /** 429. */
  refuses(message: string): Answer
  /** An error in a stream that has begun. */
  breaks(message: string): Answer
}

const isResponses = (path: string): boolean => path.startsWith('/v1/responses')

const openai: Wording = {
  says: (segments, ending) => (call, response) =>
    (isResponses(call.path)
      ? respondsSegments(segments, ending)
      : completesSegments([segments], ending))(call, response),
  refuses: (message) => failsA(429, message),
  breaks: (message) => (call, response) => {
    openStream(response)
    if (isResponses(call.path)) {
      const fields = { code: 'server_error', message, param: null, sequence_number: 0 }
      sendEvent(response, { type: 'error', ...fields }, 'error')
    } else sendEvent(response, errorA(message))
    response.end()
  },
}

const anthropic: Wording = {
  says: saysSegments,
  refuses: (message) => failsC(429, 'rate_limit_error', message),
  breaks: (message) => (_, response) => {
    openStream(response)
    const error = { type: 'overloaded_error', message }
    sendEvent(response, { type: 'error', error }, 'error')
    response.end()
  },
}

const gemini: Wording = {
  says: generatesSegments,
  refuses: (message) => failsD(429, message),
  breaks: (message) => (_, response) => {
    openStream(response)
    sendEvent(response, errorD(message, 503))
    response.end()
  },
}

const isInvoke = (path: string): boolean => /\/invoke(-with-response-stream)?$/.test(path)

const bedrock: Wording = {
  says: (segments, ending) => (call, response) =>
    (isInvoke(call.path) ? invokesSegments : conversesSegments)(segments, ending)(call, response),
  refuses: (message) => failsF(429, 'ThrottlingException', message),
  breaks: (message) => (_, response) => {
    openFrames(response)
    response.write(frame('messageStart', { role: 'assistant' }))
    response.end(frame('modelStreamErrorException', { message }, 'exception'))
  },
}

export interface Served {
  readonly name: string
  /** The route of the gateway. */
  readonly route: string
  readonly vendor: 'a' | 'c' | 'd' | 'e' | 'f'
  readonly model: string
  readonly wording: Wording
  /** Clients whose format the vendor has. */
  readonly native?: readonly string[]
  /** Clients whose bodies the model does not read, although the vendor has their paths. */
  readonly refuses?: readonly string[]
}

export const served: readonly Served[] = [
  {
    name: 'vendorA',
    route: 'a',
    vendor: 'a',
    model: 'gpt-5.5',
    wording: openai,
    native: ['Completions', 'Responses'],
  },
  { name: 'custom', route: 'custom', vendor: 'a', model: 'my-model', wording: openai },
  { name: 'vendorC', route: 'c', vendor: 'c', model: 'claude-opus-4-8', wording: anthropic },
  { name: 'vendorD', route: 'd', vendor: 'd', model: 'gemini-3-pro-preview', wording: gemini },
  {
    name: 'vendorE: Gemini',
    route: 'e',
    vendor: 'e',
    model: 'gemini-3-pro-preview',
    wording: gemini,
  },
  {
    name: 'vendorE: Claude',
    route: 'e',
    vendor: 'e',
    model: 'claude-opus-4-8',
    wording: anthropic,
  },
  {
    name: 'vendorF: Claude',
    route: 'f',
    vendor: 'f',
    model: 'anthropic.claude-opus-4-8',
    wording: bedrock,
    native: ['Converse', 'InvokeModel'],
  },
  {
    name: 'vendorF: Nova',
    route: 'f',
    vendor: 'f',
    model: 'amazon.nova-2-lite-v1:0',
    wording: bedrock,
    native: ['Converse', 'InvokeModel'],
    refuses: ['InvokeModel'],
  },
]
