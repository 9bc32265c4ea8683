/** Converts whole answers of providers to answers for the client. */
import type { AnswerContext } from '../chat.ts'
import { clientFormats, writeErrorFor } from '../client-formats.ts'
import { readCompletionsError } from '../formats/completions/response.ts'
import {
  invokeFamily,
  invokeTokensHeader,
  readPredict,
  writeEmbeddings,
} from '../formats/embeddings/embeddings.ts'
import { readInvokeCount } from '../formats/messages/invoke-count.ts'
import { isObject, type JsonObject, parseJson } from '../json/json.ts'
import { MemberScanner } from '../json/members.ts'
import { LlmError } from '../llm-error.ts'
import { chatFormatOf, type OutgoingRequest } from '../request/outgoing.ts'
import {
  answerFields,
  errorInAnswer,
  excerptOf,
  ProviderFailure,
  readerOf,
  unreadable,
} from './provider-error.ts'
import { type AnswerDetails, detailsOfAnswer } from './usage.ts'

interface ClientAnswer {
  readonly body: JsonObject
  /** False if the provider's bytes can be sent to the client unchanged. */
  readonly isChanged: boolean
  readonly details: AnswerDetails
}

const answerScanner = new MemberScanner({
  read: ['model', 'usage', 'service_tier', 'input_tokens'],
  noted: answerFields,
})

/** Returns the details of an answer that is relayed without being parsed; undefined if it must be parsed. */
export function detailsInBytes(
  { plan, route }: OutgoingRequest,
  bytes: Buffer,
): AnswerDetails | undefined {
  if (plan.kind !== 'native' || !answerScanner.scan(bytes)) return undefined
  // Without an answer, the object may be an error.
  if (!answerFields.some((name) => answerScanner.isFilled(name))) return undefined
  return detailsOfAnswer(route, answerScanner.values())
}

/** @throws LlmError 502 if the answer cannot be read. */
export function readWholeAnswer(
  request: OutgoingRequest,
  text: string,
  header: (name: string) => string | undefined,
  context: AnswerContext,
): ClientAnswer {
  const body = parseJson(text)
  const error = errorInAnswer(request, text, body)
  if (error !== undefined) throw new ProviderFailure(error)
  if (!isObject(body)) throw unreadable(text)
  const { plan, translation, route, model } = request
  switch (plan.kind) {
    case 'native':
      return { body, isChanged: false, details: detailsOfAnswer(route, body) }
    case 'translated': {
      const format = chatFormatOf(route)
      const answer = translation?.readAnswer(body)
      if (answer === undefined || format === undefined) throw new LlmError(502, 'no translation')
      const { model, usage } = answer
      const written = clientFormats[format].writeAnswer(answer, context)
      return { body: written, isChanged: true, details: { model, ...(usage && { usage }) } }
    }
    case 'embeddings': {
      const counted = Number(header(invokeTokensHeader))
      const tokens = Number.isInteger(counted) && counted > 0 ? counted : undefined
      const found =
        plan.format === 'predict' ? readPredict(body) : invokeFamily(model).read(body, tokens)
      const input = found.tokens ?? 0
      return {
        body: writeEmbeddings(model, found, request.encodesVectors === true),
        isChanged: true,
        details: { model, usage: { input, uncachedInput: input, output: 0 } },
      }
    }
    case 'invoke-count': {
      const tokens = readInvokeCount(body)
      return { body: { input_tokens: tokens }, isChanged: true, details: { countTokens: tokens } }
    }
  }
}

/** Returns the provider's error in the client's format; undefined if it already has that format. */
export function readErrorAnswer(
  request: OutgoingRequest,
  status: number,
  text: string,
): JsonObject | undefined {
  const { plan, route } = request
  if (plan.kind !== 'native') return writeErrorFor(route, readerOf(request)(status, text))
  if (isObject(parseJson(text))) return undefined
  // A proxy in front of the provider may send plain text, which no SDK can read.
  if (text.trim() === '') return statusError(request, status)
  return writeErrorFor(route, readCompletionsError(status, excerptOf(text)))
}

/** Returns an error in the client's format that names only the status of the provider. */
export function statusError({ route }: OutgoingRequest, status: number): JsonObject {
  return writeErrorFor(route, { status, message: `the provider answered ${status}` })
}
