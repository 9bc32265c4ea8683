/**
 * What there is to know about a message format. A format is described once, in `formats/<name>/index.ts`;
 * everything else asks this description and never for the name of a format.
 */
import type { TextsFormat } from '../core/index.ts'
import type { RefusalRules } from '../json/scanner.ts'
import type { ModelFacts } from './catalog/facts.ts'
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
import type { ConverseOptions } from './formats/converse/options.ts'
import type { EmbeddingsRequest, EmbeddingsResponse } from './formats/embeddings/embeddings.ts'
import type { JsonObject } from './json/json.ts'
import type { OptInPiece, ReadEvent } from './mask/event-texts.ts'
import type { FormatPlaces } from './mask/places.ts'
import type { ResponseSlots, RoleText } from './mask/slot.ts'
import type { OwnTexts } from './mask/text-fields.ts'
import type { ResponseTexts } from './mask/texts.ts'
import type { IdOpener, SealId } from './stored/stored-ids.ts'

/** The form of errors in the API of a vendor. */
export interface ErrorForm {
  readonly name: 'openai' | 'anthropic' | 'google' | 'bedrock'
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
  /** Endings of paths in the API of the vendor, in lower case. */
  readonly endings: readonly [string, ...string[]]
  /** Reads what the path says of a request; omitted if the body says everything. */
  readonly inPath?: ReadPath
  /** How the events of a streamed response are framed for clients; as server-sent events if omitted. */
  readonly framing?: Framing
  /** Where the format has texts, if the core does not know it. */
  readonly ownTexts?: OwnTexts
  readonly errors: ErrorForm
  /** Names of headers that clients send to the vendor of the format; other vendors do not get them. */
  readonly vendorHeaders: RegExp
  /** Returns a request with these settings and messages; omitted if the format has no messages. */
  withMessages?(settings: JsonObject, messages: readonly RoleText[]): JsonObject
  /** The shape of the fields that translations read. */
  readonly shape: Shape
  readonly history: History
  /** Where requests and responses have ids of what the provider stores; omitted if they have none. */
  readonly stored?: StoredIdMembers
  /** The members with texts that requests have. */
  readonly textMembers: readonly string[]
  /** Members with the maximum number of tokens of a response. */
  readonly limitMembers: readonly string[]
  /** Other members that the gateway reads, sets or charges by, and that not all formats have. */
  readonly decidedMembers: readonly string[]
  /** Says what is wrong with these members; undefined if nothing is. */
  problemOf?(body: JsonObject): string | undefined
  /** Number of prompts of a request, each of which gets its answers; omitted if that is always one. */
  promptsIn?(body: JsonObject): number
  /** Whether `stream: true` asks for a stream of events. */
  readonly canStream: boolean
  /**
   * Returns the body as providers with the format get it: without what the path says. `model` is the one that is
   * sent. Omitted if the body says everything.
   */
  withoutPath?(body: JsonObject, model: string): JsonObject
  /**
   * Returns headers that say what the body says in this format, for providers with almost the same format; omitted
   * if there are none.
   */
  headersOf?(body: JsonObject): readonly (readonly [name: string, value: string])[]
  /** The fields that may have the parameters of the request; omitted if they are fields of the body. */
  readonly parameterFields?: readonly string[]
  /** What requests that are not translated need; omitted if nothing. */
  readonly completion?: Completion
  /** Whether requests need not name a model. */
  readonly hasDefaultModel?: boolean
  /** Whether a request may ask for a response in the background, which a later request gets. */
  readonly hasBackground?: boolean
  /** Says why guards cannot read a request; undefined if they can. */
  unguardable?(body: JsonObject): string | undefined
  /** Whether an object has the member with the response. */
  hasResponse(body: JsonObject): boolean
  /** Members of responses that no error has. */
  readonly responseFields: readonly string[]
}

/** Where requests and responses of a format have ids of what the provider stores for later requests. */
interface StoredIdMembers {
  /** Names of members with such ids, at any depth of a request: with any value, or only if it is a text below the top. */
  readonly members: {
    readonly any: readonly string[]
    readonly texts: readonly string[]
    /** Checks of other texts below the top; the response may have ids if one of them fails. */
    readonly checked?: RefusalRules['checked']
  }
  /** Returns a request with the provider's ids; the same object if it has none. @throws StoredNotFoundError */
  open(body: JsonObject, ids: IdOpener): JsonObject
  /** Whether later requests can use an id of the response; always if omitted. `fields` are those that are read. */
  stores?(fields: JsonObject): boolean
  /** Returns a response with the client's ids; omitted if no id of a response can be used later. */
  seal?(response: JsonObject, seal: SealId): JsonObject
  /** Does the same for an event of a stream. */
  sealEvent?(event: JsonObject, seal: SealId): JsonObject
}

/** What the path of a request says. */
export interface PathFields {
  readonly model: string
  readonly stream: boolean
  /** How the client wants the stream to be framed, if it is not the usual way of the format. */
  readonly framing?: Framing
}

/** @throws LlmError 400 if the path names no model */
type ReadPath = (path: string, query: string | undefined) => PathFields

/**
 * How the events of a streamed response are framed: as server-sent events, as the elements of a JSON array, in
 * binary frames with one event each, or in such frames whose payload is an event in base64.
 */
export type Framing = 'sse' | 'json-array' | 'event-stream' | 'chunks'

interface Completion {
  /** Returns true if `complete` changes nothing, for a body with these fields and maybe others. */
  isComplete(fields: JsonObject, facts: ModelFacts): boolean
  complete(body: JsonObject, facts: ModelFacts): JsonObject
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
  /** Creates the writer of a streamed response. */
  writer(context: ResponseContext): ResponseEventWriter
  /** Adds the messages of a policy. @throws LlmError 400 */
  enrich(
    body: JsonObject,
    before: readonly AddedMessage[],
    after: readonly AddedMessage[],
  ): JsonObject
  /** The members with texts by their place, for the documentation and for tests. */
  readonly places: FormatPlaces
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
  /** Returns an event with another name of the model; the same object if it has none. */
  withModel(event: JsonObject, model: string): JsonObject
  /** Finds the texts in an event. */
  readonly read: ReadEvent
  /** Finds the opt-in pieces (`optInPlaces`) that continue in later events. Texts that come whole are found by `read`. */
  optIn(event: JsonObject): readonly OptInPiece[]
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
  readonly operation:
    | 'embeddings'
    | 'count_tokens'
    | 'rerank'
    | 'image_generation'
    | 'speech'
    | 'moderation'
    | 'compact'
    | 'transcription'
    | 'translation'
    | 'image_edit'
  /** Returns a response without the texts of the model, for clients that guards protect; omitted if it has none. */
  withoutTexts?(response: JsonObject): JsonObject
  /** Whether requests are multipart bodies with files, which are passed on while they arrive. */
  readonly hasFiles?: boolean
  /** The texts of the model in a response, which guards read; omitted if it has none, or if `withoutTexts` removes them. */
  readonly transcript?: Transcript
  /** Whether responses that are no JSON are passed on: sound, or a stream of events. */
  readonly relaysOthers?: boolean
  /** Translates token counts; omitted if the format has none. */
  readonly count?: CountTranslation
  /** Translates embeddings; omitted if the format has none. */
  readonly embeddings?: EmbeddingsTranslation
}

/** The text of a response that is no conversation: the text itself, JSON, or a stream of events. */
export interface Transcript {
  /** Values of `response_format` whose responses guards can read; another one is refused if guards protect the response. */
  readonly guardable: readonly string[]
  /** Returns the texts. The first one is all of it, and the others repeat it in pieces. */
  texts(response: JsonObject): readonly string[]
  /** Returns the response with another text, without the pieces. */
  withText(response: JsonObject, text: string): JsonObject
  /** Joins the events of a stream to one response; undefined if one of them is no event of a transcript. */
  joinEvents(events: readonly JsonObject[]): JsonObject | undefined
  /** Returns the events that make up a response. */
  eventsOf(response: JsonObject): readonly JsonObject[]
}

/** Token counts in a format of clients. */
interface CountTranslation {
  /** Reads the request whose tokens are counted. @throws LlmError 400 if it is no request in this format */
  readRequest(body: JsonObject): Chat
  writeResponse(tokens: number): JsonObject
}

/** Embeddings in a format of clients. */
interface EmbeddingsTranslation {
  /** @throws LlmError 400 if the body is no request in this format */
  readRequest(body: JsonObject): EmbeddingsRequest
  /** `request` is the body of the client. */
  writeResponse(model: string, response: EmbeddingsResponse, request: JsonObject): JsonObject
}

export type ClientFormat = ChatFormat | OtherFormat

export function needCount(format: ClientFormat): CountTranslation {
  if (format.operation === 'count_tokens' && format.count) return format.count
  throw new Error(`${format.name} requests are no token counts`)
}

export function needEmbeddings(format: ClientFormat): EmbeddingsTranslation {
  if (format.operation === 'embeddings' && format.embeddings) return format.embeddings
  throw new Error(`${format.name} requests are no embeddings`)
}

export const transcriptOf = (format: ClientFormat): Transcript | undefined =>
  format.operation === 'chat' ? undefined : format.transcript

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

/** What writers of requests need in addition to the conversation. */
export interface WriteOptions extends ConverseOptions {
  /** What is known of the model. */
  readonly facts: ModelFacts
}

/** A format of providers, to which conversations are translated. */
export interface ProviderFormat {
  /** Which call ids and names of tools the format allows. */
  readonly labels: LabelRules
  readonly framing: Framing
  /** @throws LlmError 400 if the format does not support the conversation. */
  writeRequest(chat: Chat, labels: ToolLabels, options: WriteOptions): JsonObject
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
