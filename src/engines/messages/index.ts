/**
 * What the gateway knows about messages of models, for other programs: translation of requests and responses
 * between formats, usage, and the texts that guards read. Does no I/O.
 */
import { randomBytes } from 'node:crypto'
import { isStackOverflow } from '../../ground/base/stack-overflow.ts'
import { laterUsage, type ResponseContext, type Usage } from './chat.ts'
import { detailsOfResponse } from './common/response-details.ts'
import { checkShape } from './common/shape.ts'
import { asksForStream, type ChatFormat, chatFormatOf } from './format.ts'
import {
  type ChatFormatName,
  clientFormats,
  type ProviderFormatName,
  providerFormats,
} from './formats/index.ts'
import { isObject, type JsonObject, stringAt } from './json/json.ts'
import { LlmError } from './llm-error.ts'
import { needOwnTexts } from './mask/message-forms.ts'
import type { RoleText } from './mask/slot.ts'
import { responseTexts, requestTexts as textsOfRequest } from './mask/slots.ts'
import { otherName } from './request/body.ts'
import { needChat, type OutgoingRequest } from './request/outgoing.ts'
import { translate } from './request/translation.ts'
import { ModelResponseStream } from './response/stream.ts'
import { readErrorResponse, readWholeResponse } from './response/whole.ts'

export {
  type ChatFormatName,
  type JsonObject,
  LlmError,
  type ProviderFormatName,
  type RoleText,
  type Usage,
}

/** Maximum size in bytes of an event in a stream that is translated. */
const eventLimit = 32 * 1024 * 1024

interface TranslationOptions {
  /** The model to ask for; the one in the request if omitted. */
  readonly model?: string
  /** Returns a new random part for ids that the format of the response needs; 24 hexadecimal digits if omitted. */
  readonly newId?: () => string
}

/** A request in the format of a provider, and the way back for its response. */
export interface TranslatedRequest {
  readonly model: string
  readonly body: JsonObject
  /** Whether the provider is asked for a stream of events. */
  readonly isStream: boolean
  /** Translates a whole response. @throws LlmError 502 if the text is no response in the provider's format. */
  response(text: string): JsonObject
  /** Translates an error response; undefined if the client can read it as it is. */
  error(status: number, text: string): JsonObject | undefined
  /** Returns what translates one streamed response. */
  stream(): TranslatedStream
}

/** Translates the bytes of a streamed response. What cannot be read ends the stream with an error event. */
export interface TranslatedStream {
  /** Returns the events for the client, as server-sent events; bytes may be cut anywhere. */
  push(chunk: Uint8Array): Uint8Array
  /** Returns the last events. `isCut`: whether the connection was lost before the response was over. */
  end(isCut?: boolean): Uint8Array
  /** The tokens that the response has used so far; undefined until the provider has sent them. */
  readonly usage: Usage | undefined
}

/**
 * Translates a conversation from the format of a client to that of a provider.
 * @throws LlmError 400 if the body is no request in this format, or if the provider's format cannot express it
 */
export const translateRequest = (
  body: JsonObject,
  from: ChatFormatName,
  to: ProviderFormatName,
  options: TranslationOptions = {},
): TranslatedRequest => checked(body, 400, () => translated(body, from, to, options ?? {}))

/**
 * Runs what reads an object, which may be nested too deeply.
 * @throws LlmError with this status
 */
function checked<Result>(body: JsonObject, status: number, read: () => Result): Result {
  if (!isObject(body)) throw new LlmError(status, 'the body is not a JSON object')
  try {
    return read()
  } catch (error) {
    if (!isStackOverflow(error)) throw error
    throw new LlmError(status, 'the body is nested too deeply')
  }
}

/** Returns a format by its name. @throws LlmError 400 if there is none */
function formatNamed<Formats extends object, Name extends keyof Formats>(
  formats: Formats,
  name: Name,
): Formats[Name] {
  if (Object.hasOwn(formats, name)) return formats[name]
  throw new LlmError(400, `unknown format ${String(name)}: use ${Object.keys(formats).join(', ')}`)
}

/** Returns the format of a conversation. @throws LlmError 400 if there is none */
function chatFormatNamed(name: ChatFormatName): ChatFormat {
  const format = chatFormatOf(
    formatNamed<typeof clientFormats, ChatFormatName>(clientFormats, name),
  )
  if (format === undefined) throw new LlmError(400, `${name} is not a format of conversations`)
  return format
}

function translated(
  body: JsonObject,
  from: ChatFormatName,
  to: ProviderFormatName,
  { model, newId = () => randomBytes(12).toString('hex') }: TranslationOptions,
): TranslatedRequest {
  const format = clientFormats[chatFormatNamed(from).name as ChatFormatName]
  const asked = model === undefined ? body : { ...body, model }
  needOwnTexts(asked, format, format.endings[0])
  checkShape(format.shape, asked, '')
  const chat = format.readRequest(asked)
  const translation = translate(chat, formatNamed(providerFormats, to), { newId })
  const request: OutgoingRequest = {
    format,
    plan: { kind: 'translated', path: '', format: to },
    model: chat.model,
    asked: otherName(stringAt(body, 'model'), chat.model),
    body: translation.body,
    translation,
    isStream: asksForStream(asked, format),
    hidesUsage: false,
  }
  const context = (): ResponseContext => ({
    created: Math.floor(Date.now() / 1_000),
    newId,
    request: asked,
  })
  return {
    model: chat.model,
    body: translation.body,
    isStream: request.isStream,
    response: (text) => readWholeResponse(request, text, () => undefined, context()).body,
    error: (status, text) => readErrorResponse(request, status, text),
    stream: () => streamOf(request, context()),
  }
}

function streamOf(request: OutgoingRequest, context: ResponseContext): TranslatedStream {
  let usage: Usage | undefined
  const stream = new ModelResponseStream({
    request,
    format: needChat(request.format),
    eventLimit,
    context,
    isProtected: false,
    onDetails: ({ usage: now }) => {
      if (now !== undefined) usage = laterUsage(usage, now)
    },
    onContent: () => {},
  })
  const collect = (run: (emit: (bytes: Uint8Array) => void) => void): Uint8Array => {
    const pieces: Uint8Array[] = []
    run((bytes) => void pieces.push(bytes))
    return Buffer.concat(pieces)
  }
  return {
    push: (chunk) => collect((emit) => stream.push(chunk, emit)),
    end: (isCut = false) => collect((emit) => (isCut ? stream.fail(emit) : stream.end(emit))),
    get usage() {
      return usage
    },
  }
}

/** Returns the texts of a request that guards read. @throws LlmError 400 if it is nested too deeply */
export const requestTexts = (body: JsonObject): RoleText[] =>
  checked(body, 400, () => textsOfRequest(body))

/** Returns the usage in a whole response; undefined if it has none. @throws LlmError 400 for an unknown format */
export const usageOf = (response: JsonObject, format: ChatFormatName): Usage | undefined =>
  checked(response, 502, () => detailsOfResponse(chatFormatNamed(format), response).usage)

/** Returns the texts of a whole response that guards read. @throws LlmError 502 if it is nested too deeply */
export const textsOfResponse = (response: JsonObject, format: ChatFormatName): RoleText[] =>
  checked(response, 502, () => responseTexts(response, chatFormatNamed(format)))
