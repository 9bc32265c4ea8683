/** Requests and responses of the two chat formats that the playground speaks. */
import { jsonValues, type PageResponse } from '../source/send.ts'

export interface ChatMessage {
  readonly role: 'user' | 'assistant'
  readonly content: string
}

interface ChatFormat {
  /** End of the path, after `/v1`. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  body(model: string, messages: readonly ChatMessage[], isStream: boolean): object
  /** The text in one value of a response; empty if it has none. */
  textOf(value: unknown): string
}

type Json = Readonly<Record<string, unknown>> | undefined
const member = (value: unknown, name: string | number): unknown =>
  typeof value === 'object' && value !== null ? (value as Json)?.[name] : undefined
const path = (value: unknown, ...names: readonly (string | number)[]): unknown =>
  names.reduce<unknown>((inner, name) => member(inner, name), value)
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Maximum number of tokens of an answer, which the format Messages requires. */
const maxTokens = 1_024

export const chatFormats = {
  'Chat Completions': {
    path: '/chat/completions',
    headers: {},
    body: (model, messages, stream) => ({ model, messages, stream }),
    textOf: (value) =>
      text(path(value, 'choices', 0, 'delta', 'content')) ||
      text(path(value, 'choices', 0, 'message', 'content')),
  },
  Messages: {
    path: '/messages',
    headers: { 'anthropic-version': '2023-06-01' },
    body: (model, messages, stream) => ({ model, messages, stream, max_tokens: maxTokens }),
    textOf: (value) => {
      const parts = path(value, 'content')
      if (!Array.isArray(parts)) return text(path(value, 'delta', 'text'))
      return parts.map((part) => text(path(part, 'text'))).join('')
    },
  },
} as const satisfies Readonly<Record<string, ChatFormat>>
export type ChatFormatName = keyof typeof chatFormats

/** The answer of a model, as far as it has arrived. */
export const answerText = (format: ChatFormatName, response: PageResponse): string =>
  jsonValues(response)
    .map((value) => chatFormats[format].textOf(value))
    .join('')

/** Path of the requests below that of a route, which may already end with `/v1`, or be that of a format. */
export function chatPath(format: ChatFormatName, base: string): string {
  const end = chatFormats[format].path
  if (base.endsWith(end)) return base
  return /\/v\d\w*$/.test(base) ? `${base}${end}` : `${base}/v1${end}`
}
