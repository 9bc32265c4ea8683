/** All message formats. */

import type { ChatFormat, ClientFormat, EmbeddingsFormat, ProviderFormat } from '../format.ts'
import { type CountFormat, countFormats } from '../request/counts/index.ts'
import { ownCollections, storedCollections } from '../stored/collections.ts'
import { completions, completionsProvider } from './completions/index.ts'
import { converseClient } from './converse/client.ts'
import { converse } from './converse/index.ts'
import { batchEmbedContents, embedContent } from './embeddings/embed-content.ts'
import { embeddings, invoke, predict, vectors } from './embeddings/index.ts'
import { generateContentClient } from './generate-content/client.ts'
import { geminiTokenCount } from './generate-content/count-tokens.ts'
import { generateContent } from './generate-content/index.ts'
import { invokeModel } from './invoke-model/index.ts'
import { messages, messagesProvider, tokenCount } from './messages/index.ts'
import {
  images,
  moderations,
  rerank,
  responsesCompact,
  responsesTokenCount,
  speech,
} from './passed-on/index.ts'
import { responses, responsesProvider } from './responses/index.ts'
import { textCompletions } from './text-completions/index.ts'
import { imageEdits, imageVariations, transcriptions, translations } from './uploads/index.ts'

const all = [
  completions,
  messages,
  responses,
  tokenCount,
  embeddings,
  generateContentClient,
  geminiTokenCount,
  embedContent,
  batchEmbedContents,
  converseClient,
  invokeModel,
  textCompletions,
  rerank,
  images,
  speech,
  moderations,
  responsesTokenCount,
  responsesCompact,
  transcriptions,
  translations,
  imageEdits,
  imageVariations,
] as const

export type KnownFormat = (typeof all)[number]
/** Types of requests that the gateway reads, by the names that users write in `routes`. */
export type ReadRouteType = KnownFormat['name']
export type ChatFormatName = Extract<KnownFormat, ChatFormat>['name']

const byName = new Map<string, KnownFormat>(all.map((format) => [format.name, format]))

/** Formats of clients by their names. */
export const clientFormats = Object.fromEntries(byName) as {
  readonly [Format in KnownFormat as Format['name']]: Format
}

/** Returns the format of a route type; undefined if the gateway does not read its requests. */
export const formatOf = (route: string): KnownFormat | undefined => byName.get(route)

/** What requests of a type ask for. */
export const operationOf = (route: ReadRouteType): ClientFormat['operation'] =>
  clientFormats[route].operation

/** Values of `routes`. */
export const routeTypes = [
  ...all.map(({ name }): ReadRouteType => name),
  'Models',
  ...ownCollections.map((name) => storedCollections[name].type),
  'Passthrough',
  'Realtime',
] as const
export type RouteType = (typeof routeTypes)[number]

/** Formats to which conversations are translated, by the names in the plans of providers. */
export const providerFormats = {
  completions: completionsProvider,
  responses: responsesProvider,
  messages: messagesProvider,
  converse,
  'generate-content': generateContent,
} as const satisfies Readonly<Record<string, ProviderFormat>>
export type ProviderFormatName = keyof typeof providerFormats

/** Formats to which embeddings are translated. */
export const embeddingsFormats = { vectors, predict, invoke } as const satisfies Readonly<
  Record<string, EmbeddingsFormat>
>
export type EmbeddingsFormatName = keyof typeof embeddingsFormats

/** Members of responses, in any format, with what is learned from them. */
export const detailFields: readonly string[] = [
  ...new Set([
    ...['model', 'usage', 'service_tier', 'serviceTier', 'input_tokens', 'totalTokens'],
    ...all.flatMap(({ usageField, modelField }: ClientFormat) => [
      ...(usageField === undefined ? [] : [usageField]),
      ...(modelField === undefined ? [] : [modelField]),
    ]),
  ]),
]

/** Members of responses, in any format, that no error has. */
export const responseFields: readonly string[] = [
  ...new Set(
    [
      ...all,
      ...Object.values<ProviderFormat>(providerFormats),
      ...Object.values(embeddingsFormats),
      ...Object.values<CountFormat>(countFormats),
    ].flatMap((format) => format.responseFields ?? []),
  ),
]
