/** Writes whole responses and errors of Converse. */
import type { Citation, ModelResponse, ProviderError, StopReason, Usage } from '../../chat.ts'
import { argumentsObject } from '../../common/arguments.ts'
import { compact, type JsonObject } from '../../json/json.ts'

const stopReasons = {
  end: 'end_turn',
  length: 'max_tokens',
  tool: 'tool_use',
  filter: 'content_filtered',
} as const satisfies Record<StopReason, string>

export const writeConverseStop = (reason: StopReason, sequence?: string): string =>
  reason === 'end' && sequence !== undefined ? 'stop_sequence' : stopReasons[reason]

export const writeConverseCitation = ({ url, title, quote }: Citation): JsonObject =>
  compact({
    title,
    location: { web: { url } },
    sourceContent: quote === undefined ? undefined : [{ text: quote }],
  })

function writeBlock(block: ModelResponse['blocks'][number]): JsonObject {
  switch (block.type) {
    case 'text': {
      const { text, citations } = block
      if (citations === undefined) return { text }
      return {
        citationsContent: { content: [{ text }], citations: citations.map(writeConverseCitation) },
      }
    }
    case 'thinking': {
      const { text, signature } = block
      return { reasoningContent: { reasoningText: compact({ text, signature }) } }
    }
    case 'redacted-thinking':
      return { reasoningContent: { redactedContent: block.data } }
    case 'made-image':
      return writeMadeImage(block)
    case 'tool-call': {
      const { id, name, input } = block
      return { toolUse: { toolUseId: id, name, input: argumentsObject(input) } }
    }
  }
}

export const writeMadeImage = (image: {
  readonly mediaType: string
  readonly data: string
}): JsonObject => ({
  image: { format: image.mediaType.replace(/^image\//, ''), source: { bytes: image.data } },
})

export function writeConverse(response: ModelResponse): JsonObject {
  const { blocks, refusal, stop, stopSequence, usage } = response
  const content = blocks.map(writeBlock)
  if (refusal !== undefined) content.push({ text: refusal })
  return compact({
    output: { message: { role: 'assistant', content } },
    stopReason: writeConverseStop(stop, stopSequence),
    usage: writeConverseUsage(usage),
    // Clients need the member; the gateway does not know the time that the model took.
    metrics: { latencyMs: 0 },
  })
}

export function writeConverseUsage(usage: Usage | undefined): JsonObject {
  const { uncachedInput = 0, output = 0, cacheRead, cacheWrite } = usage ?? {}
  return compact({
    inputTokens: uncachedInput,
    outputTokens: output,
    totalTokens: uncachedInput + output + (cacheRead ?? 0) + (cacheWrite ?? 0),
    cacheReadInputTokens: cacheRead,
    cacheWriteInputTokens: cacheWrite,
  })
}

const exceptionsByStatus: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  401: 'AccessDeniedException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  503: 'ServiceUnavailableException',
}

/** Exceptions by types of errors in other formats, which say more than a status that the gateway made. */
const exceptionsByKind = new Map<string | undefined, string>([
  ['invalid_request_error', 'ValidationException'],
  ['rate_limit_error', 'ThrottlingException'],
  ['overloaded_error', 'ServiceUnavailableException'],
])

/** Returns the name by which SDKs know an error. */
const exceptionOf = ({ status, kind }: Pick<ProviderError, 'status' | 'kind'>): string =>
  exceptionsByKind.get(kind) ??
  exceptionsByStatus[status] ??
  (status < 500 ? 'ValidationException' : 'InternalServerException')

/** Exceptions that streams may have, by their names there; SDKs know no others. */
const streamed: ReadonlySet<string> = new Set([
  ...['internalServerException', 'modelStreamErrorException', 'validationException'],
  ...['throttlingException', 'serviceUnavailableException'],
])

/** Returns the name of an error in a stream, which begins with a small letter. */
export function streamExceptionOf(error: Pick<ProviderError, 'status' | 'kind' | 'code'>): string {
  const { code } = error
  if (code !== undefined && streamed.has(code)) return code
  const name = exceptionOf(error)
  const small = name.charAt(0).toLowerCase() + name.slice(1)
  return streamed.has(small) ? small : 'modelStreamErrorException'
}

export const writeConverseError = (error: ProviderError): JsonObject => ({
  __type: exceptionOf(error),
  message: error.message,
})
