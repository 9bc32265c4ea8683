/** Whole answers of providers -> what the client gets. */
import type { AnswerContext } from '../client-formats.ts'
import { clientFormats } from '../client-formats.ts'
import { readCompletionsError } from '../formats/completions/response.ts'
import {
  type Embeddings,
  invokeFamily,
  invokeTokensHeader,
  readPredict,
  writeEmbeddings,
} from '../formats/embeddings/embeddings.ts'
import { readInvokeCount } from '../formats/invoke-count.ts'
import { isObject, type JsonObject, parseJson } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { writeErrorFor } from './errors.ts'
import { errorInAnswer, excerptOf, readerOf, unreadable } from './provider-error.ts'
import { ProviderFailure } from './provider-failure.ts'
import { chatFormatOf, type OutgoingRequest } from './request.ts'
import { type AnswerFacts, factsOfAnswer } from './usage.ts'

interface ClientAnswer extends AnswerFacts {
  readonly body: JsonObject
  /** False: the provider's own bytes say the same. */
  readonly isChanged: boolean
}

/** @throws LlmError 502 where it cannot be read. */
export function readWholeAnswer(
  request: OutgoingRequest,
  text: string,
  header: (name: string) => string | undefined,
  context: AnswerContext,
): ClientAnswer {
  const body = parseJson(text)
  const error = errorInAnswer(request, text)
  if (error !== undefined) throw new ProviderFailure(error)
  if (!isObject(body)) throw unreadable(text)
  const { plan, translation, route, model } = request
  switch (plan.kind) {
    case 'native':
      return { body, isChanged: false, ...factsOfAnswer(route, body) }
    case 'translated': {
      const format = chatFormatOf(route)
      const answer = translation?.readAnswer(body)
      if (answer === undefined || format === undefined) throw new LlmError(502, 'no translation')
      const { usage } = answer
      return {
        body: clientFormats[format].writeAnswer(answer, context),
        isChanged: true,
        model: answer.model,
        ...(usage && { usage }),
      }
    }
    case 'embeddings': {
      const counted = Number(header(invokeTokensHeader))
      const tokens = Number.isInteger(counted) && counted > 0 ? counted : undefined
      const found =
        plan.format === 'predict' ? readPredict(body) : invokeFamily(model).read(body, tokens)
      return embeddingsAnswer(model, found, request.encodesVectors === true)
    }
    case 'invoke-count': {
      const tokens = readInvokeCount(body)
      return { body: { input_tokens: tokens }, isChanged: true, countTokens: tokens }
    }
  }
}

function embeddingsAnswer(model: string, found: Embeddings, isEncoded: boolean): ClientAnswer {
  const input = found.tokens ?? 0
  return {
    body: writeEmbeddings(model, found, isEncoded),
    isChanged: true,
    model,
    usage: { input, uncachedInput: input, output: 0 },
  }
}

/** An error of the provider in the client's format; undefined where it is in that format already. */
export function readErrorAnswer(
  request: OutgoingRequest,
  status: number,
  text: string,
): JsonObject | undefined {
  const { plan, route } = request
  if (plan.kind === 'native') {
    // What is in front of a provider may answer in words of its own, which no SDK can read.
    return isObject(parseJson(text)) ? undefined : plainError(route, status, text)
  }
  return writeErrorFor(route, readerOf(request)(status, text))
}

function plainError(route: OutgoingRequest['route'], status: number, text: string): JsonObject {
  const message = text.trim() === '' ? `the provider answered ${status}` : excerptOf(text)
  return writeErrorFor(route, readCompletionsError(status, message))
}
