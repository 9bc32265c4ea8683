/**
 * The common form of a conversation with a model. Every client format is read into it, every
 * provider format is written from it, so formats and providers add up instead of multiplying. It
 * holds what at least two formats can say; a pair of equal formats does not pass through it.
 */
import type { JsonObject } from './json.ts'

/** What providers speak. */
export type ProviderFormat = 'completions' | 'messages' | 'converse' | 'generate-content'

/** Where an image or a document is. */
export type MediaSource =
  | { readonly type: 'data'; readonly mediaType: string /** Base64. */; readonly data: string }
  | { readonly type: 'url'; readonly url: string; readonly mediaType?: string }

export interface TextBlock {
  readonly type: 'text'
  readonly text: string
  /** The client wants everything up to here cached. */
  readonly cache?: boolean
}

export interface ImageBlock {
  readonly type: 'image'
  readonly source: MediaSource
  /** Where it stands in the client's request, for refusals. */
  readonly path: string
  readonly cache?: boolean
}

export interface DocumentBlock {
  readonly type: 'document'
  readonly source: MediaSource
  readonly path: string
  readonly name?: string
  /** Background on the document, for the model. */
  readonly context?: string
  readonly cache?: boolean
}

export interface AudioBlock {
  readonly type: 'audio'
  /** Base64. */
  readonly data: string
  /** Such as `wav`. */
  readonly format: string
  readonly path: string
}

/** What the client's own search has found, for the model to quote. */
export interface SearchResultBlock {
  readonly type: 'search-result'
  readonly title: string
  readonly source: string
  readonly texts: readonly string[]
  readonly cache?: boolean
}

export interface ToolCallBlock {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  /** Arguments: an object as a rule; text that is no JSON stays a string. */
  readonly input: unknown
  /** In answers: the client's tool takes plain text, and `input` is that. */
  readonly custom?: boolean
  readonly cache?: boolean
}

export interface ToolResultBlock {
  readonly type: 'tool-result'
  /** Id of the call. */
  readonly id: string
  readonly content: readonly ResultPart[]
  readonly isError?: boolean
  readonly cache?: boolean
}

export type ResultPart = TextBlock | ImageBlock | DocumentBlock | AudioBlock | SearchResultBlock

export interface ThinkingBlock {
  readonly type: 'thinking'
  readonly text: string
  readonly signature?: string
}

/** Thinking that only its provider can read. */
export interface RedactedThinkingBlock {
  readonly type: 'redacted-thinking'
  readonly data: string
}

export type Block =
  | TextBlock
  | ImageBlock
  | DocumentBlock
  | AudioBlock
  | SearchResultBlock
  | ToolCallBlock
  | ToolResultBlock
  | ThinkingBlock
  | RedactedThinkingBlock

export interface Turn {
  readonly role: 'user' | 'assistant'
  readonly blocks: readonly Block[]
}

export interface Tool {
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments; its type is `object`. */
  readonly schema: JsonObject
  /** The client wants plain text and no arguments; the schema has one property, `input`. */
  readonly custom?: boolean
  readonly cache?: boolean
}

/** A search of the web by the provider itself. */
export interface WebSearch {
  /** Where the client asks for it, for refusals. */
  readonly path: string
  readonly maxUses?: number
  readonly allowedDomains?: readonly unknown[]
  readonly blockedDomains?: readonly unknown[]
  /** City, region, country and timezone, each if it is known. */
  readonly location?: JsonObject
  /** How much of what is found the model reads: low, medium or high. */
  readonly contextSize?: string
}

export type ToolChoice =
  | { readonly type: 'auto' | 'required' | 'none' }
  | { readonly type: 'tool'; readonly name: string }

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

export type Reasoning =
  | { readonly type: 'effort'; readonly effort: Effort }
  | { readonly type: 'budget'; readonly tokens: number }
  | { readonly type: 'adaptive'; readonly effort?: Effort }
  | { readonly type: 'off' }

export type OutputFormat =
  | { readonly type: 'json' }
  | {
      readonly type: 'schema'
      readonly name?: string
      readonly description?: string
      readonly schema: unknown
    }

export interface Chat {
  readonly model: string
  readonly system: readonly TextBlock[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly webSearch?: WebSearch
  readonly toolChoice?: ToolChoice
  readonly parallelTools?: boolean
  readonly maxTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly stop?: readonly string[]
  readonly seed?: number
  readonly frequencyPenalty?: number
  readonly presencePenalty?: number
  /** Number of answers. */
  readonly choices?: number
  readonly reasoning?: Reasoning
  readonly output?: OutputFormat
  /** The client wants images beside text. */
  readonly images?: boolean
  readonly user?: string
  /** Fields of the generate-content format alone, by its names; other formats do not get them. */
  readonly generateContent?: JsonObject
  readonly stream: boolean
}

/** What is read from single fields of a request. */
export type ScalarFields = Omit<
  Chat,
  'model' | 'system' | 'turns' | 'tools' | 'webSearch' | 'toolChoice' | 'images' | 'stream'
>

/** Why an answer ended. */
export type StopReason = 'end' | 'length' | 'tool' | 'filter'

/** Tokens, as a provider counts them. */
export interface Usage {
  /** As reported: with cached tokens or without, by the provider's habit. */
  readonly input: number
  /** Without what was read from or written to a cache. */
  readonly uncachedInput: number
  readonly output: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  /** Part of `output`. */
  readonly reasoning?: number
  /** Parts of input and output by what they are, such as `inputAudioTokens`. */
  readonly kinds?: Readonly<Record<string, number>>
}

/**
 * What is known after another report of the same answer. Counts only grow; a report may leave out
 * what an earlier one said: some providers report the input once.
 */
export function laterUsage(before: Usage | undefined, now: Usage): Usage {
  if (before === undefined) return now
  const { input, uncachedInput } = now.input > 0 || now.uncachedInput > 0 ? now : before
  const output = now.output > 0 ? now.output : before.output
  return { ...before, ...now, input, uncachedInput, output }
}

/** Input with everything that was read from or written to a cache: what limits and logs count. */
export function inputWithCache({ uncachedInput, cacheRead = 0, cacheWrite = 0 }: Usage): number {
  return uncachedInput + cacheRead + cacheWrite
}

/** An image that the model has made. */
export interface MadeImageBlock {
  readonly type: 'made-image'
  readonly mediaType: string
  /** Base64. */
  readonly data: string
}

/** One of the answers that were asked for. */
export interface Choice {
  readonly blocks: readonly (
    | TextBlock
    | ToolCallBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | MadeImageBlock
  )[]
  readonly stop: StopReason
}

export interface Answer extends Choice {
  readonly id: string
  readonly model: string
  /** Choices behind the first one, for clients that asked for several. */
  readonly others?: readonly Choice[]
  /** The sequence that ended it, where the provider says so. */
  readonly stopSequence?: string
  readonly usage?: Usage
}

/**
 * An answer in pieces, in the order in which they come. Indexes number blocks from 0; blocks of
 * different indexes may interleave.
 */
export type AnswerEvent =
  | { readonly type: 'start'; readonly id: string; readonly model: string; readonly usage?: Usage }
  | { readonly type: 'text'; readonly index: number; readonly text: string }
  | {
      readonly type: 'thinking'
      readonly index: number
      readonly text: string
      readonly signature?: string
    }
  | { readonly type: 'redacted-thinking'; readonly index: number; readonly data: string }
  /** A whole block. */
  | ({ readonly index: number } & MadeImageBlock)
  | {
      readonly type: 'tool-start'
      readonly index: number
      readonly id: string
      readonly name: string
      /** The input that follows is plain text, in one piece. */
      readonly custom?: boolean
    }
  | {
      readonly type: 'tool-input'
      readonly index: number /** Part of JSON. */
      readonly json: string
    }
  | { readonly type: 'block-stop'; readonly index: number }
  | { readonly type: 'stop'; readonly reason: StopReason; readonly stopSequence?: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'error'; readonly error: ProviderError }
  /** The provider finished as its protocol demands; without it the answer was cut off. */
  | { readonly type: 'end' }

/** What a provider says went wrong. */
export interface ProviderError {
  /** HTTP status of the answer. */
  readonly status: number
  /** The provider's own word, such as `rate_limit_error`. */
  readonly kind?: string
  readonly code?: string
  readonly message: string
}

/** Reads a streamed answer piece by piece. */
export interface AnswerReader {
  /** One event of the provider's stream: name where it has one, and its data. */
  read(event: StreamEvent): readonly AnswerEvent[]
  /** The stream is over. */
  finish(): readonly AnswerEvent[]
}

export interface StreamEvent {
  readonly event: string | undefined
  readonly data: string
}

/** Takes events out of the bytes of a stream, however they are cut. */
export interface EventDecoder {
  /** Part of an event has arrived, and its end has not. */
  readonly isInside: boolean
  /**
   * Gives the events that the bytes complete, in order. The bytes may be overwritten afterwards.
   * @throws LlmError 502 for an event that is too large or broken, behind the events before it
   */
  push(chunk: Uint8Array, onEvent: (event: StreamEvent) => void): void
}

/** Writes a streamed answer in a client's format. */
export interface AnswerWriter {
  write(event: AnswerEvent): readonly StreamEvent[]
  /** No more events come; `isClean` where the provider finished properly. */
  finish(isClean: boolean): readonly StreamEvent[]
}

/** Budgets of thinking tokens for words of effort. */
const budgets: Readonly<Record<Effort, number>> = {
  none: 0,
  minimal: 1024,
  low: 1024,
  medium: 2048,
  high: 4096,
  xhigh: 8192,
  max: 16_384,
}

/** Thinking tokens that a request asks for; undefined where thinking is off or left to the model. */
export function thinkingBudget(reasoning: Reasoning | undefined): number | undefined {
  switch (reasoning?.type) {
    case 'budget':
      return reasoning.tokens
    case 'effort':
      return reasoning.effort === 'none' ? undefined : budgets[reasoning.effort]
    default:
      return undefined
  }
}

const efforts: ReadonlySet<unknown> = new Set(Object.keys(budgets))

export function isEffort(value: unknown): value is Effort {
  return efforts.has(value)
}

const toolBlocks: ReadonlySet<Block['type']> = new Set(['tool-call', 'tool-result'])

export const hasToolBlocks = ({ turns }: Chat): boolean =>
  turns.some(({ blocks }) => blocks.some(({ type }) => toolBlocks.has(type)))

/** Name of a tool for providers that want one in each request with calls in its history. */
export const unavailableTool = 'unavailable'
