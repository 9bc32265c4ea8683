/**
 * The common form of a conversation with a model. Every client format is read into it and every provider format is
 * written from it, so N client formats and M provider formats need N + M converters. It has the features that at least
 * two formats share. No common form is used if the client and the provider have the same format.
 */
import type { Effort, Service } from './catalog/facts.ts'
import type { JsonObject } from './json/json.ts'

/** An image or a document, or its location. */
export type MediaSource =
  | { readonly type: 'data'; readonly mediaType: string /** Base64. */; readonly data: string }
  | { readonly type: 'url'; readonly url: string; readonly mediaType?: string }

/** How long a provider caches. */
export type CacheLifetime = '5m' | '1h'

export interface Cacheable {
  /** The client asks the provider to cache everything up to and including this item. */
  readonly cache?: CacheLifetime
}

/** A source in the web that a text of the model rests on. */
export interface Citation {
  readonly url: string
  readonly title?: string
  /** Text of the source. */
  readonly quote?: string
  /** The part of the block's text that rests on the source; all of it if omitted. */
  readonly range?: { readonly start: number; readonly end: number }
}

export interface TextBlock extends Cacheable {
  readonly type: 'text'
  readonly text: string
  /** Sources of a text in a response. */
  readonly citations?: readonly Citation[]
}

export interface ImageBlock extends Cacheable {
  readonly type: 'image'
  readonly source: MediaSource
  /** JSON path in the client's request, for error messages. */
  readonly path: string
}

export interface DocumentBlock extends Cacheable {
  readonly type: 'document'
  readonly source: MediaSource
  readonly path: string
  readonly name?: string
  /** Background on the document, for the model. */
  readonly context?: string
  /** True if the model should cite the document. */
  readonly isCited?: boolean
}

export interface AudioBlock {
  readonly type: 'audio'
  /** Base64. */
  readonly data: string
  /** Such as `wav`. */
  readonly format: string
  readonly path: string
}

/** A result of a search that the client ran; the model may quote it. */
export interface SearchResultBlock extends Cacheable {
  readonly type: 'search-result'
  readonly title: string
  readonly source: string
  readonly texts: readonly string[]
}

export interface ToolCallBlock extends Cacheable {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  /** The arguments, usually an object; a string if they are not JSON. */
  readonly input: unknown
  /** Set in responses if the client's tool takes plain text; `input` is then that text. */
  readonly custom?: boolean
  /** Set in responses if the client's tool is in a namespace; `name` is then its name there. */
  readonly namespace?: string
}

export interface ToolResultBlock extends Cacheable {
  readonly type: 'tool-result'
  /** Id of the call. */
  readonly id: string
  readonly content: readonly ResultPart[]
  readonly isError?: boolean
}

export type ResultPart = TextBlock | ImageBlock | DocumentBlock | AudioBlock | SearchResultBlock

export interface ThinkingBlock {
  readonly type: 'thinking'
  readonly text: string
  readonly signature?: string
}

/** Thinking that only the provider can read. */
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

/** A message of the system stands in its place if others precede it; the provider may need it at the beginning. */
export interface Turn {
  readonly role: 'user' | 'assistant' | 'system'
  readonly blocks: readonly Block[]
}

export interface Tool extends Cacheable {
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments; its type is `object`. */
  readonly schema: JsonObject
  /** True if the client's tool takes plain text; the schema then has only the property `input`. */
  readonly custom?: boolean
  /** True if the provider must enforce the schema. */
  readonly strict?: boolean
  /** Set if the client's tool is in a namespace; `name` is then unique among all tools. */
  readonly member?: { readonly namespace: string; readonly name: string }
}

/** A web search tool that the provider runs. */
export interface WebSearch {
  /** Its path in the client's request, for error messages. */
  readonly path: string
  /** True if a request without the search still is what the client asked for. */
  readonly isOptional?: boolean
  readonly maxUses?: number
  readonly allowedDomains?: readonly unknown[]
  readonly blockedDomains?: readonly unknown[]
  /** Location of the user: city, region, country and timezone, as far as known. */
  readonly location?: JsonObject
  /** How much of the results the model reads: low, medium or high. */
  readonly contextSize?: string
}

export type ToolChoice =
  | { readonly type: 'auto' | 'required' | 'none' }
  | { readonly type: 'tool'; readonly name: string }
  /** The web search. */
  | { readonly type: 'search' }

export type Reasoning =
  /** `isGuide`: the effort guides the model, but the client does not ask it to think. */
  | { readonly type: 'effort'; readonly effort: Effort; readonly isGuide?: boolean }
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
      /** True if the provider must enforce the schema. */
      readonly strict?: boolean
      /** JSON path in the client's request, for error messages. */
      readonly path: string
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
  /** Number of choices in the response. */
  readonly choices?: number
  readonly reasoning?: Reasoning
  /** Whether the response has the thinking as text; the model decides if omitted. */
  readonly showsThinking?: boolean
  readonly output?: OutputFormat
  /** True if the client asks for images in addition to text. */
  readonly images?: boolean
  readonly user?: string
  readonly service?: Service
  readonly verbosity?: string
  /** The client leaves it to the provider where to cache. */
  readonly cache?: CacheLifetime
  /** Fields that only the generate-content format has, by their names there. */
  readonly generateContent?: JsonObject
  readonly stream: boolean
}

/** Why a response ended. */
export type StopReason = 'end' | 'length' | 'tool' | 'filter'

/**
 * The tokens that a provider bills. Logs, limits, records, metrics and clients get the same counts:
 * `inputWithCache` as the input, and `output`.
 */
export interface Usage {
  /** Input tokens as the provider counts them; some providers include cached tokens, others do not. */
  readonly input: number
  /** Input tokens that were neither read from nor written to a cache. */
  readonly uncachedInput: number
  readonly output: number
  readonly cacheRead?: number
  /** Tokens of audio, which `cacheRead` includes. */
  readonly cacheReadAudio?: number
  readonly cacheWrite?: number
  /** Tokens that are cached for an hour, which `cacheWrite` includes. */
  readonly cacheWrite1h?: number
  /** Tokens of reasoning, which `output` includes. */
  readonly reasoning?: number
  /** Parts of the input and output tokens by kind, such as `inputAudioTokens`. */
  readonly kinds?: Readonly<Record<string, number>>
  /** Numbers of calls that the provider bills, by their names in catalogs, such as `webSearch`. */
  readonly calls?: Readonly<Record<string, number>>
  /** Service, place and speed, such as `priority`, `us` and `fast`, if the provider says them with the usage. */
  readonly service?: string
  readonly geography?: string
  readonly speed?: string
}

/** Merges two reports of one response. Counts only grow; a later report may omit earlier ones, such as the input. */
export function laterUsage(before: Usage | undefined, now: Usage): Usage {
  if (before === undefined) return now
  const { input, uncachedInput } = now.input > 0 || now.uncachedInput > 0 ? now : before
  const output = now.output > 0 ? now.output : before.output
  return { ...before, ...now, input, uncachedInput, output }
}

/** Returns all input tokens, including those read from or written to a cache. */
export function inputWithCache({ uncachedInput, cacheRead = 0, cacheWrite = 0 }: Usage): number {
  return uncachedInput + cacheRead + cacheWrite
}

/** An image that the model made. */
export interface MadeImageBlock {
  readonly type: 'made-image'
  readonly mediaType: string
  /** Base64. */
  readonly data: string
}

/** One of the alternative responses to a request. */
export interface Choice {
  readonly blocks: readonly (
    | TextBlock
    | ToolCallBlock
    | ThinkingBlock
    | RedactedThinkingBlock
    | MadeImageBlock
  )[]
  readonly stop: StopReason
  /** Text in which the model, or its provider, declines to answer. */
  readonly refusal?: string
}

export interface ModelResponse extends Choice {
  readonly id: string
  readonly model: string
  /** The choices after the first one, if the client asked for several. */
  readonly others?: readonly Choice[]
  /** The stop sequence that ended the response, if the provider reports it. */
  readonly stopSequence?: string
  readonly usage?: Usage
}

/**
 * An event of a streamed response. `index` is the position of a block in the response, counted from 0;
 * events of different blocks may interleave.
 */
export type ResponseEvent =
  | { readonly type: 'start'; readonly id: string; readonly model: string; readonly usage?: Usage }
  | { readonly type: 'text'; readonly index: number; readonly text: string }
  /** A source of the text in the block. */
  | { readonly type: 'citation'; readonly index: number; readonly citation: Citation }
  /** Part of the text in which the model, or its provider, declines to answer. */
  | { readonly type: 'refusal'; readonly text: string }
  | {
      readonly type: 'thinking'
      readonly index: number
      readonly text: string
      readonly signature?: string
    }
  | { readonly type: 'redacted-thinking'; readonly index: number; readonly data: string }
  /** A whole image, in a single event. */
  | ({ readonly index: number } & MadeImageBlock)
  | {
      readonly type: 'tool-start'
      readonly index: number
      readonly id: string
      readonly name: string
      /** True if the input is plain text, which follows in a single event. */
      readonly custom?: boolean
      /** Set if the client's tool is in a namespace; `name` is then its name there. */
      readonly namespace?: string
    }
  /** `json`: part of the JSON text of the arguments. */
  | { readonly type: 'tool-input'; readonly index: number; readonly json: string }
  | { readonly type: 'block-stop'; readonly index: number }
  | { readonly type: 'stop'; readonly reason: StopReason; readonly stopSequence?: string }
  | { readonly type: 'usage'; readonly usage: Usage }
  | { readonly type: 'error'; readonly error: ProviderError }
  /** The provider ended the stream as its protocol demands; a response without this was cut off. */
  | { readonly type: 'end' }

/** An error that a provider reports. */
export interface ProviderError {
  /** HTTP status of the response. */
  readonly status: number
  /** The type of the error in the provider's format, such as `rate_limit_error`. */
  readonly kind?: string
  readonly code?: string
  readonly message: string
}

/** Reads the events of a streamed response. */
export interface ResponseEventReader {
  read(event: StreamEvent): readonly ResponseEvent[]
  /** Called at the end of the provider's stream; returns the last events. */
  finish(): readonly ResponseEvent[]
}

export interface StreamEvent {
  readonly event: string | undefined
  readonly data: string
}

/** Decodes events from a stream of bytes, whose chunks may end anywhere. */
export interface EventDecoder {
  /** True while the end of the last event has not arrived. */
  readonly isInside: boolean
  /** What is missing after the last event if it is whole otherwise, because some servers omit the empty line. */
  readonly missingEnd: Uint8Array | undefined
  /**
   * Calls `onEvent` for each event that the chunk completes, in order. The caller may reuse the
   * memory of the chunk afterwards.
   * @throws LlmError 502 if an event is too large or invalid, after the events before it
   */
  push(chunk: Uint8Array, onEvent: (event: StreamEvent) => void): void
}

/** Properties of the request that a writer needs in addition to the response. */
export interface ResponseContext {
  /** Creation time, in seconds since the epoch. */
  readonly created: number
  /** Returns a new random part for an id. */
  newId(): string
  /** The request as the client sent it. */
  readonly request: JsonObject
}

/** Writes a streamed response in a client's format. */
export interface ResponseEventWriter {
  write(event: ResponseEvent): readonly StreamEvent[]
  /** Called at the end of the stream. `isClean` is true if the provider ended it as its protocol demands. */
  finish(isClean: boolean): readonly StreamEvent[]
}

const isToolBlock = ({ type }: Block): boolean => type === 'tool-call' || type === 'tool-result'

export const hasToolBlocks = ({ turns }: Chat): boolean =>
  turns.some(({ blocks }) => blocks.some(isToolBlock))

/** Returns the conversation with all messages of the system at the beginning, for providers that need them there. */
export function withSystemFirst(chat: Chat): Chat {
  const { system, turns } = chat
  const later = turns.filter(({ role }) => role === 'system')
  if (later.length === 0) return chat
  const texts = later.flatMap(({ blocks }) => blocks.filter((block) => block.type === 'text'))
  return {
    ...chat,
    system: [...system, ...texts],
    turns: turns.filter(({ role }) => role !== 'system'),
  }
}

/** Name of a placeholder tool, for providers that require a tool if the history has tool calls. */
export const unavailableTool = 'unavailable'
