/** All message formats. */
import type { ChatFormat, EmbeddingsFormat, ProviderFormat } from '../format.ts'
import { completions, completionsProvider } from './completions/index.ts'
import { converse } from './converse/index.ts'
import { embeddings, invoke, predict } from './embeddings/index.ts'
import { generateContent } from './generate-content/index.ts'
import { invokeCount } from './invoke-count/index.ts'
import { messages, messagesProvider, tokenCount } from './messages/index.ts'
import { responses } from './responses/index.ts'

const all = [completions, messages, responses, tokenCount, embeddings] as const

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

/** Values of `routes`. */
export const routeTypes = [
  ...all.map(({ name }): ReadRouteType => name),
  'Models',
  'Passthrough',
  'Realtime',
] as const
export type RouteType = (typeof routeTypes)[number]

/** Formats to which conversations are translated, by the names in the plans of providers. */
export const providerFormats = {
  completions: completionsProvider,
  messages: messagesProvider,
  converse,
  'generate-content': generateContent,
} as const satisfies Readonly<Record<string, ProviderFormat>>
export type ProviderFormatName = keyof typeof providerFormats

/** Formats to which embeddings are translated. */
export const embeddingsFormats = { predict, invoke } as const satisfies Readonly<
  Record<string, EmbeddingsFormat>
>
export type EmbeddingsFormatName = keyof typeof embeddingsFormats

/** Members of responses, in any format, that no error has. */
export const responseFields: readonly string[] = [
  ...new Set(
    [
      ...all,
      ...Object.values<ProviderFormat>(providerFormats),
      ...Object.values(embeddingsFormats),
      invokeCount,
    ].flatMap((format) => format.responseFields ?? []),
  ),
]
