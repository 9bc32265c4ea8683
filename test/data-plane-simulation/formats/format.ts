/** How clients and vendors write chats. */
import type { FormatPlaces } from '../../../src/engines/messages/mask/places.ts'

/** The tokens that a vendor bills for a response. */
export interface BilledUsage {
  readonly input: number
  readonly output: number
  /** The part of it for which a compaction of the conversation is billed, which vendor C reports apart. */
  readonly compacted?: Readonly<Record<'input' | 'output', number>>
}

/** What a client asks. */
export interface Asked {
  readonly tag: string
  readonly isStream: boolean
  /** Whether the client asks for the usage in a stream. */
  readonly wantsUsage: boolean
  readonly system: string | undefined
  readonly question: string
  /** A text of the user in a part of a type that is for models; undefined if there is none. */
  readonly aside: string | undefined
  /** Whether the question is a list of parts. */
  readonly hasParts: boolean
}

/** What a model says. */
export interface Said {
  readonly tag: string
  /** The speech, as the events of a stream cut it. */
  readonly pieces: readonly string[]
  readonly usage: BilledUsage
}

/** Whether the vendor says in each event that the speech ends, as some servers do. */
export const endsEarly = ({ pieces }: Said): boolean => pieces.length % 3 === 0

/** How a client asks, and what it reads. */
export interface ClientFormat {
  readonly path: string
  /** Members that have texts, by their places, as the gateway documents them. */
  readonly places: FormatPlaces
  /** Whether streams have the usage only if the client asks for it. */
  readonly asksForUsage: boolean
  /** Texts that only events of errors have. */
  readonly errorEvents: readonly string[]
  request(asked: Asked): object
  /** Returns the text that an event adds. */
  textOfEvent(data: unknown): string
  /** Returns the text that an event repeats as a whole; undefined if it repeats none. */
  repeatedText(data: unknown): string | undefined
  /** Returns the text of a whole response; undefined if it is none. */
  textOfWhole(response: unknown): string | undefined
}

/** How a vendor is asked, and what it responds. */
export interface VendorFormat {
  /** Whether streams have the usage only if the request asks for it. */
  readonly asksForUsage: boolean
  /** Returns the last text of a request. */
  questionOf(request: unknown): string
  whole(said: Said): object
  events(said: Said): string
  error(tag: string): object
}

export type ChatFormat = ClientFormat & VendorFormat

/** Returns the text of a content that is a text or a list of parts. */
export const textOfContent = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : (content as readonly { readonly text: string }[]).map(({ text }) => text).join('')

interface Conversation {
  readonly messages: readonly { readonly content: unknown }[]
}

/** Returns the text of the last message. */
export const lastMessage = (request: unknown): string =>
  textOfContent((request as Conversation).messages.at(-1)?.content)

export const contentOf = ({ question, hasParts }: Asked) =>
  hasParts ? [{ type: 'text', text: question }] : question
