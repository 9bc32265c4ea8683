/** Converts whole responses of providers to responses for the client. */
import { JsonScanner } from '../../json/scanner.ts'
import type { ResponseContext } from '../chat.ts'
import { detailsOfResponse, type ResponseDetails } from '../common/response-details.ts'
import { chatFormatOf } from '../format.ts'
import { openAiErrors } from '../formats/completions/index.ts'
import { invokeTokensHeader, writeEmbeddings } from '../formats/embeddings/embeddings.ts'
import { embeddingsFormats, responseFields } from '../formats/index.ts'
import { invokeCount } from '../formats/invoke-count/index.ts'
import { isObject, type JsonObject, parseJson } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
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

const responseScanner = new JsonScanner({
  read: ['model', 'usage', 'service_tier', 'input_tokens'],
  noted: responseFields,
})

/** Returns the details of a response that is relayed without being parsed; undefined if it must be parsed. */
export function detailsInBytes(
  { plan, format }: OutgoingRequest,
  bytes: Buffer,
): ResponseDetails | undefined {
  if (plan.kind !== 'native' || !responseScanner.scanObject(bytes)) return undefined
  // Without a response, the object may be an error.
  if (!responseFields.some((name) => responseScanner.isFilled(name))) return undefined
  return detailsOfResponse(format, responseScanner.values())
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
  const { plan, translation, format, model } = request
  switch (plan.kind) {
    case 'native':
      return { body, isChanged: false, details: detailsOfResponse(format, body) }
    case 'translated': {
      const chat = chatFormatOf(format)
      const response = translation?.readResponse(body)
      if (response === undefined || chat === undefined) throw new LlmError(502, 'no translation')
      const { model, usage } = response
      const written = chat.writeResponse(response, context)
      return { body: written, isChanged: true, details: { model, ...(usage && { usage }) } }
    }
    case 'embeddings': {
      const counted = Number(header(invokeTokensHeader))
      const tokens = Number.isInteger(counted) && counted > 0 ? counted : undefined
      const found = embeddingsFormats[plan.format].readResponse(body, model, tokens)
      const input = found.tokens ?? 0
      return {
        body: writeEmbeddings(model, found, request.encodesVectors === true),
        isChanged: true,
        details: { model, usage: { input, uncachedInput: input, output: 0 } },
      }
    }
    case 'invoke-count': {
      const tokens = invokeCount.readResponse(body)
      return { body: { input_tokens: tokens }, isChanged: true, details: { countTokens: tokens } }
    }
  }
}

/** Returns the provider's error in the client's format; undefined if it already has that format. */
export function readErrorResponse(
  request: OutgoingRequest,
  status: number,
  text: string,
): JsonObject | undefined {
  const { plan, format } = request
  if (plan.kind !== 'native') return format.errors.write(readerOf(request)(status, text))
  if (isObject(parseJson(text))) return undefined
  // A proxy in front of the provider may send plain text, which no SDK can read.
  if (text.trim() === '') return statusError(request, status)
  return format.errors.write(openAiErrors.read(status, excerptOf(text)))
}

/** Returns an error in the client's format that names only the status of the provider. */
export function statusError({ format }: OutgoingRequest, status: number): JsonObject {
  return format.errors.write({ status, message: `the provider answered ${status}` })
}
