/**
 * What there is to know about a message format. A format is described once, in `formats/<name>/index.ts`;
 * everything else asks this description and never for the name of a format.
 */
import type { TextsFormat } from '../core/index.ts'
import type {
  Chat,
  ModelResponse,
  ProviderError,
  ResponseContext,
  ResponseEventReader,
  ResponseEventWriter,
  StreamEvent,
} from './chat.ts'
import type { AddedMessage } from './common/added-messages.ts'
import type { History } from './common/history.ts'
import type { AddCall, OutputCall } from './common/output-call.ts'
import type { DetailFacts, EventDetails } from './common/response-details.ts'
import type { Shape } from './common/shape.ts'
import type { LabelRules, ToolLabels } from './common/tool-labels.ts'
import type { ConverseOptions } from './formats/converse/write-request.ts'
import type { EmbeddingsRequest, EmbeddingsResponse } from './formats/embeddings/embeddings.ts'
import type { JsonObject } from './json/json.ts'
import type { ReadEvent } from './mask/event-texts.ts'
import type { ResponseSlots, RoleText } from './mask/slot.ts'
import type { ResponseTexts } from './mask/texts.ts'

/** The form of errors in the API of a vendor. */
export interface ErrorForm {
  readonly name: 'openai' | 'anthropic'
  /** Reads an error of a provider. */
  read(status: number, text: string): ProviderError
  write(error: ProviderError): JsonObject
  /** Code of an error after which clients give up instead of repeating the request. */
  readonly finalCode?: string
}

/** A format in which clients send requests. */
interface RequestFormat<Name extends string> extends DetailFacts {
  /** The name that users write in `routes`. */
  readonly name: Name
  /**
   * The name by which the core knows the format; omitted if it does not: guards then read requests as parsed JSON, and
   * guarded streams are held.
   */
  readonly core?: TextsFormat
  /** Ending of the path in the API of the vendor, in lower case. */
  readonly ending: string
  readonly errors: ErrorForm
  /** Returns a request with these settings and messages; omitted if the format has no messages. */
  withMessages?(settings: JsonObject, messages: readonly RoleText[]): JsonObject
  /** The shape of the fields that translations read. */
  readonly shape: Shape
  readonly history: History
  /** The members with texts that requests have. */
  readonly textMembers: readonly string[]
  /** Members with the maximum number of tokens of a response. */
  readonly limitMembers: readonly string[]
  /** Other members that the gateway reads, sets or charges by, and that not all formats have. */
  readonly decidedMembers: readonly string[]
  /** Says what is wrong with these members; undefined if nothing is. */
  problemOf?(body: JsonObject): string | undefined
  /** Whether `stream: true` asks for a stream of events. */
  readonly canStream: boolean
  /** What requests that are not translated need; omitted if nothing. */
  readonly completion?: Completion
  /** Whether a request may ask for a response in the background, which a later request gets. */
  readonly hasBackground?: boolean
  /** Says why guards cannot read a request; undefined if they can. */
  unguardable?(body: JsonObject): string | undefined
  /** Whether an object has the member with the response. */
  hasResponse(body: JsonObject): boolean
  /** Members of responses that no error has. */
  readonly responseFields: readonly string[]
}

interface Completion {
  /** Returns true if `complete` changes nothing, for a body with these fields and maybe others. */
  isComplete(fields: JsonObject, model: string): boolean
  complete(body: JsonObject, model: string): JsonObject
  /** Whether the client does not get the usage of the stream, because only the gateway asks for it. */
  hidesUsage(body: JsonObject): boolean
  /** Returns what the client gets instead of an event, without usage. `corrected` is the event as it would get it. */
  withoutUsage(
    event: StreamEvent,
    parsed: JsonObject,
    corrected: JsonObject,
  ): readonly StreamEvent[]
}

/** A format of conversations. */
export interface ChatFormat<Name extends string = string> extends RequestFormat<Name> {
  /** The operation in telemetry; OpenTelemetry's conventions have the same names. */
  readonly operation: 'chat'
  /** @throws LlmError 400 if the body is not a request in this format. */
  readRequest(body: JsonObject): Chat
  writeResponse(response: ModelResponse, context: ResponseContext): JsonObject
  /** Creates the writer of a streamed response. `request` is the body as the client sent it. */
  writer(request: JsonObject, context: ResponseContext): ResponseEventWriter
  /** Adds the messages of a policy. @throws LlmError 400 */
  enrich(
    body: JsonObject,
    before: readonly AddedMessage[],
    after: readonly AddedMessage[],
  ): JsonObject
  /** The texts of whole responses, which guards read. */
  readonly texts: ResponseTexts
  /** The same texts as webhooks see them. */
  readonly slots: ResponseSlots
  /** Returns the calls of tools in a whole response. */
  callsIn(body: JsonObject): readonly OutputCall[]
  readonly events: EventFormat
}

/** Corrects events in which providers deviate from the format. */
export interface EventCorrection {
  /** Returns the correct event: the same object if nothing had to be changed. */
  correct(event: JsonObject): JsonObject
}

/** The events of streamed responses. */
export interface EventFormat {
  /** Whether an object is an event of a response. */
  isEvent(event: JsonObject): boolean
  /** Types of events that end a response. */
  readonly lastTypes: readonly string[]
  /** Whether an event ends a response although its type does not say so. */
  isLast?(event: JsonObject): boolean
  /** Whether `[DONE]` follows, so that a stream without it was cut off. */
  readonly endsWithDone: boolean
  /** Creates what corrects the events of one stream that is not translated; omitted if nothing is wrong. */
  correction?(): EventCorrection
  /** Whether an event is an error in another format, which SDKs ignore. `name` is that of the event. */
  isForeignError(event: JsonObject, name: string | undefined): boolean
  /** Returns the pieces of content in an event: texts, thoughts, arguments of tools. */
  contentOf(event: JsonObject): string[]
  /** Returns the reader of the details in one stream. */
  details(): EventDetails
  /** Finds the texts in an event. */
  readonly read: ReadEvent
  /** Adds the pieces of calls of tools in an event. */
  addCalls(event: JsonObject, add: AddCall): void
  /** Whether later events repeat the texts of ended parts. */
  readonly repeatsTexts: boolean
  /** Whether parts whose text guards have emptied are removed. */
  readonly losesEmptyParts: boolean
  /** The texts that webhooks see as one. */
  readonly groups: {
    /** Returns the names of the groups that an event shows, also if they have no text. */
    in(event: JsonObject): readonly string[]
    /** Returns the name of the group of a part. */
    of(part: string): string
  }
}

/** A format of requests that are no conversations. */
export interface OtherFormat<Name extends string = string> extends RequestFormat<Name> {
  readonly operation: 'embeddings' | 'count_tokens'
}

export type ClientFormat = ChatFormat | OtherFormat

/** Whether a request asks for a stream of events. */
export const asksForStream = (body: JsonObject, { canStream }: ClientFormat): boolean =>
  canStream && body.stream === true

export const chatFormatOf = (format: ClientFormat): ChatFormat | undefined =>
  format.operation === 'chat' ? format : undefined

/** What responses of some formats lack. */
export interface KnownOfResponse {
  readonly model: string
  /** Returns a new random part for an id. */
  newId(): string
}

/** A format of providers, to which conversations are translated. */
export interface ProviderFormat {
  /** Which call ids and names of tools the format allows. */
  readonly labels: LabelRules
  /** How the events of a streamed response are framed. */
  readonly framing: 'sse' | 'event-stream'
  /** @throws LlmError 400 if the format does not support the conversation. */
  writeRequest(chat: Chat, labels: ToolLabels, options: ConverseOptions): JsonObject
  /** @throws LlmError 502 if the body is not a response in this format. */
  readResponse(body: unknown, known: KnownOfResponse): ModelResponse
  reader(known: KnownOfResponse): ResponseEventReader
  readError(status: number, text: string): ProviderError
  /** Members of responses that no error has; omitted if clients use the format as well. */
  readonly responseFields?: readonly string[]
}

/** A format of embeddings to which requests are translated. */
export interface EmbeddingsFormat {
  writeRequest(request: EmbeddingsRequest): JsonObject
  /** `tokens` is the number of input tokens in the response header `invokeTokensHeader`. */
  readResponse(body: unknown, model: string, tokens: number | undefined): EmbeddingsResponse
  readError(status: number, text: string): ProviderError
  /** Members of responses that no error has. */
  readonly responseFields: readonly string[]
}
