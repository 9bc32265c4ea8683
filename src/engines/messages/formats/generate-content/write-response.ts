/** Writes whole responses in vendor D's native format. */
import {
  type Choice,
  type Citation,
  inputWithCache,
  type ModelResponse,
  type ProviderError,
  type RedactedThinkingBlock,
  type StopReason,
  type ThinkingBlock,
  type ToolCallBlock,
  type Usage,
} from '../../chat.ts'
import { argumentsObject } from '../../common/arguments.ts'
import { placedCitations, quoteOf } from '../../common/citations.ts'
import { bareId, signatureOf, standInSignature } from '../../common/thought-signature.ts'
import { bytesBefore } from '../../common/utf8-places.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { sealThoughts } from './sealed-thoughts.ts'

const finishReasons: Readonly<Record<StopReason, string>> = {
  end: 'STOP',
  length: 'MAX_TOKENS',
  tool: 'STOP',
  filter: 'SAFETY',
}

export const writeFinishReason = (stop: StopReason): string => finishReasons[stop]

type Thought = ThinkingBlock | RedactedThinkingBlock

/**
 * Writes a call. `thoughts` came before it. Its id has the signature of vendor D, if it has one. The first call of a
 * response always gets a signature, because vendor D may be the one that gets the next request.
 */
export function writeCall(
  { id, name, input }: Pick<ToolCallBlock, 'id' | 'name' | 'input'>,
  thoughts: readonly Thought[],
  isFirst: boolean,
): JsonObject {
  const own = signatureOf(id) ?? sealThoughts(thoughts)
  return compact({
    functionCall: { id: bareId(id), name, args: argumentsObject(input) },
    thoughtSignature: own ?? (isFirst ? standInSignature : undefined),
  })
}

/** Writes a thought; clients see its text, and send the signature back. */
export const writeThought = (thought: Thought): JsonObject =>
  compact({
    text: thought.type === 'thinking' ? thought.text : '',
    thought: true,
    thoughtSignature: sealThoughts([thought]),
  })

function partsOf({ blocks, refusal }: Choice): JsonObject[] {
  const parts: JsonObject[] = []
  let thoughts: Thought[] = []
  let calls = 0
  for (const block of blocks) {
    if (block.type === 'text') parts.push({ text: block.text })
    else if (block.type === 'made-image') {
      parts.push({ inlineData: { mimeType: block.mediaType, data: block.data } })
    } else if (block.type === 'tool-call') {
      parts.push(writeCall(block, thoughts, calls++ === 0))
      thoughts = []
    } else {
      thoughts.push(block)
      parts.push(writeThought(block))
    }
  }
  if (refusal !== undefined) parts.push({ text: refusal })
  return parts
}

/** Writes sources; their places are bytes of the text. */
export function writeGrounding(
  text: string,
  citations: readonly (Citation & { readonly range: NonNullable<Citation['range']> })[],
): JsonObject {
  const bytes = bytesBefore(
    text,
    citations.flatMap(({ range: { start, end } }) => [start, end]),
  )
  return {
    groundingChunks: citations.map(({ url, title }) => ({ web: compact({ uri: url, title }) })),
    groundingSupports: citations.map(({ range: { start, end } }, at) => ({
      segment: {
        startIndex: bytes.get(start),
        endIndex: bytes.get(end),
        text: quoteOf(text, { start, end }),
      },
      groundingChunkIndices: [at],
    })),
  }
}

function writeCandidate(choice: Choice, index: number): JsonObject {
  const texts = choice.blocks.filter((block) => block.type === 'text')
  const citations = placedCitations(texts)
  const text = texts.map((block) => block.text).join('')
  return compact({
    content: { role: 'model', parts: partsOf(choice) },
    finishReason: writeFinishReason(choice.stop),
    index,
    groundingMetadata: citations.length === 0 ? undefined : writeGrounding(text, citations),
  })
}

export function writeGenerateContent(response: ModelResponse): JsonObject {
  const { id, model, others = [], usage } = response
  return compact({
    candidates: [response, ...others].map(writeCandidate),
    usageMetadata: usage && writeGenerateContentUsage(usage),
    modelVersion: model,
    responseId: id,
  })
}

export function writeGenerateContentUsage(usage: Usage): JsonObject {
  const { output, reasoning, cacheRead } = usage
  const input = inputWithCache(usage)
  return compact({
    promptTokenCount: input,
    cachedContentTokenCount: cacheRead,
    candidatesTokenCount: output - (reasoning ?? 0),
    thoughtsTokenCount: reasoning,
    totalTokenCount: input + output,
  })
}

const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

export function writeGoogleError({ status: code, message }: ProviderError): JsonObject {
  const other = code >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'
  return { error: { code, message, status: statuses[code] ?? other } }
}
