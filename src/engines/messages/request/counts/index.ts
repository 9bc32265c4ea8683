/** Token counts by providers whose formats of counts are not those of clients. */
import type { ModelFacts } from '../../catalog/facts.ts'
import type { Chat, ProviderError } from '../../chat.ts'
import { countAt } from '../../common/usage.ts'
import type { ProviderFormat } from '../../format.ts'
import { generateContent } from '../../formats/generate-content/index.ts'
import { responsesProvider } from '../../formats/responses/index.ts'
import type { JsonObject } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'
import { translate } from '../translation.ts'
import { invokeCount } from './invoke.ts'

interface CountContext {
  readonly model: string
  readonly facts: ModelFacts
  /** Reads the request in the client's format. */
  readRequest(body: JsonObject): Chat
  newId(): string
}

export interface CountFormat {
  writeRequest(body: JsonObject, context: CountContext): JsonObject
  /** @throws LlmError 502 if the response has no count. */
  readResponse(body: JsonObject): number
  readError(status: number, text: string): ProviderError
  /** Members of responses that no error has. */
  readonly responseFields: readonly string[]
}

/** Makes the format of counts of a provider that are like its conversations. `keep` lists what a count may have. */
function countOf(
  format: ProviderFormat,
  responseField: string,
  keep: readonly string[],
  wrap: (body: JsonObject, context: CountContext) => JsonObject = (body) => body,
): CountFormat {
  return {
    writeRequest(body, context) {
      const { facts, readRequest, newId } = context
      const written = translate(readRequest(body), format, { facts, newId }).body
      const kept = Object.entries(written).filter(([name]) => keep.includes(name))
      return wrap(Object.fromEntries(kept), context)
    },
    readResponse(body) {
      const tokens = countAt(body, responseField)
      if (tokens === undefined) throw new LlmError(502, `the response has no ${responseField}`)
      return tokens
    },
    readError: format.readError,
    responseFields: [responseField],
  }
}

const contents = ['contents', 'systemInstruction', 'tools', 'toolConfig', 'generationConfig']

export const countFormats = {
  invoke: invokeCount,
  responses: countOf(responsesProvider, 'input_tokens', [
    'model',
    'input',
    'instructions',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'reasoning',
    'text',
  ]),
  /** The Gemini API counts whole requests only if they name their model. */
  gemini: countOf(generateContent, 'totalTokens', contents, (body, { model }) => ({
    generateContentRequest: { model: model.includes('/') ? model : `models/${model}`, ...body },
  })),
  vertex: countOf(generateContent, 'totalTokens', contents.slice(0, 3)),
} as const satisfies Readonly<Record<string, CountFormat>>
export type CountFormatName = keyof typeof countFormats

/** Statuses of servers that have no path for counts. */
const lacking: ReadonlySet<number> = new Set([404, 405, 501])

/** Returns whether the gateway must count because the server cannot. */
export const lacksCounts = (status: number): boolean => lacking.has(status)
