/** Converts whole responses of providers to responses for the client. */
import { JsonScanner } from '../../json/scanner.ts'
import type { ResponseContext } from '../chat.ts'
import { detailsOfResponse, type ResponseDetails, withModel } from '../common/response-details.ts'
import { type ClientFormat, chatFormatOf, needCount, needEmbeddings } from '../format.ts'
import { openAiErrors } from '../formats/completions/index.ts'
import { invokeTokensHeader } from '../formats/embeddings/embeddings.ts'
import { detailFields, embeddingsFormats, responseFields } from '../formats/index.ts'
import { isObject, type JsonObject, parseJson, utf8Text } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { countFormats } from '../request/counts/index.ts'
import type { OutgoingRequest } from '../request/outgoing.ts'
import {
  errorInResponse,
  excerptOf,
  ProviderFailure,
  readerOf,
  unreadable,
} from './provider-error.ts'

interface ClientResponse {
  readonly body: JsonObject
  /** False if the provider's bytes can be sent to the client unchanged. */
  readonly isChanged: boolean
  readonly details: ResponseDetails
}

const responseScanner = new JsonScanner({ read: detailFields, noted: responseFields })

/** Returns the details of a response that is relayed without being parsed; undefined if it must be parsed. */
export function detailsInBytes(
  { plan, format, seal }: OutgoingRequest,
  bytes: Buffer,
): ResponseDetails | undefined {
  if (plan.kind !== 'native' || seal !== undefined || !responseScanner.scanObject(bytes))
    return undefined
  // Without a response, the object may be an error.
  if (!responseFields.some((name) => responseScanner.isFilled(name))) return undefined
  const values = responseScanner.values()
  return detailsOfResponse(format, billedItems(format, bytes, values))
}

/** Adds the items of a response to its scanned members, if the provider bills any of them. */
function billedItems(
  { billedItems: types }: OutgoingRequest['format'],
  bytes: Buffer,
  values: JsonObject,
): JsonObject {
  const range = types === undefined ? undefined : responseScanner.rangeOf('output')
  if (range === undefined || types === undefined) return values
  const items = bytes.subarray(range.start, range.end)
  const hasAny = types.some((type) => items.includes(type))
  return hasAny ? { ...values, output: parseJson(utf8Text(items)) } : values
}

/**
 * Returns the bytes of the response that `detailsInBytes` has read last, with the model that the client asked for;
 * undefined if they need no change.
 */
export function withAskedModel(
  { asked, format }: OutgoingRequest,
  bytes: Buffer,
): Buffer | undefined {
  const range =
    asked === undefined ? undefined : responseScanner.rangeOf(format.modelField ?? 'model')
  if (range === undefined) return undefined
  const model = Buffer.from(JSON.stringify(asked))
  return Buffer.concat([bytes.subarray(0, range.start), model, bytes.subarray(range.end)])
}

/** Returns the response of a provider with the client's format, with the names and ids that the client knows. */
function correctNative({ format, asked, seal }: OutgoingRequest, body: JsonObject): ClientResponse {
  const known: ClientFormat = format
  const named = asked === undefined ? body : withModel(body, asked, known.modelField)
  const sealed = seal && known.stored?.seal?.(named, seal)
  const corrected = sealed ?? named
  const details = detailsOfResponse(format, body)
  return { body: corrected, isChanged: corrected !== body, details }
}

/** @throws LlmError 502 if the response cannot be read. */
export function readWholeResponse(
  request: OutgoingRequest,
  text: string,
  header: (name: string) => string | undefined,
  context: ResponseContext,
): ClientResponse {
  const body = parseJson(text)
  const error = errorInResponse(request, text, body)
  if (error !== undefined) throw new ProviderFailure(error)
  if (!isObject(body)) throw unreadable(text)
  const { plan, translation, format, model, asked } = request
  switch (plan.kind) {
    case 'native':
      return correctNative(request, body)
    case 'translated': {
      const chat = chatFormatOf(format)
      const response = translation?.readResponse(body)
      if (response === undefined || chat === undefined) throw new LlmError(502, 'no translation')
      const { model, usage } = response
      const written = chat.writeResponse({ ...response, model: asked ?? model }, context)
      return { body: written, isChanged: true, details: { model, ...(usage && { usage }) } }
    }
    case 'embeddings': {
      const counted = Number(header(invokeTokensHeader))
      const tokens = Number.isInteger(counted) && counted > 0 ? counted : undefined
      const found = embeddingsFormats[plan.format].readResponse(body, model, tokens)
      const input = found.tokens ?? 0
      return {
        body: needEmbeddings(format).writeResponse(
          asked ?? model,
          found,
          request.asksVectors ?? {},
        ),
        isChanged: true,
        details: { model, usage: { input, uncachedInput: input, output: 0 } },
      }
    }
    case 'count': {
      const tokens = countFormats[plan.format].readResponse(body)
      const written = needCount(format).writeResponse(tokens)
      return { body: written, isChanged: true, details: { countTokens: tokens } }
    }
  }
}

/**
 * Returns the provider's error in the client's format; undefined if it already has that format. If guards protect the
 * response, the message is never the text itself, whose keys and escapes they do not read.
 */
export function readErrorResponse(
  request: OutgoingRequest,
  status: number,
  text: string,
  isGuarded = false,
): JsonObject | undefined {
  const { plan, format } = request
  if (plan.kind !== 'native' || plan.errors !== undefined) {
    const error = readerOf(request)(status, text)
    return isGuarded && error.message === text
      ? statusError(request, status)
      : format.errors.write(error)
  }
  if (isObject(parseJson(text))) return undefined
  // A proxy in front of the provider may send plain text, which no SDK can read.
  if (isGuarded || text.trim() === '') return statusError(request, status)
  return format.errors.write(openAiErrors.read(status, excerptOf(text)))
}

/** Returns an error in the client's format that names only the status of the provider. */
export function statusError({ format }: OutgoingRequest, status: number): JsonObject {
  return format.errors.write({ status, message: `the provider answered ${status}` })
}
