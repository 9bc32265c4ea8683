import {
  countTokens as countOf,
  encodeTokens,
  loadEncoding,
} from '../../../src/engines/core/tokens.ts'
import { encodingForModel, type ModelEncoding } from '../../../src/engines/core/tokens-models.ts'
import { loadVocabulary } from './vocabularies.ts'

/** A message of a chat, or only its text. */
export type ChatMessage =
  | string
  | {
      readonly role?: string
      readonly content?: string | null | readonly (string | { readonly text?: string })[]
      readonly tool_calls?: unknown
    }

/** Counts tokens for a model. Counts are exact if its vocabulary is published, and estimates otherwise. */
export class TokenCounter {
  readonly model: string
  readonly #encoding: ModelEncoding

  private constructor(model: string, encoding: ModelEncoding) {
    this.model = model
    this.#encoding = encoding
  }

  /** Loads the vocabulary of a model: 0.3 to 0.7 MB, which take up to 17 MB of memory. */
  static async load(model = 'gpt-4o'): Promise<TokenCounter> {
    const encoding = encodingForModel(model)
    await loadVocabulary(encoding.encoding)
    loadEncoding(encoding.encoding)
    return new TokenCounter(model, encoding)
  }

  /** Whether counts are exact. */
  get isExact(): boolean {
    return this.#encoding.exact
  }

  /** The number of tokens of a text. Bytes are UTF-8. */
  count(text: string | Uint8Array): number {
    return Math.ceil(countOf(text, this.#encoding.encoding) * this.#encoding.factor)
  }

  /** The ids of the tokens in the vocabulary, which is another model's if counts are estimates. */
  encode(text: string | Uint8Array): Uint32Array {
    return encodeTokens(text, this.#encoding.encoding)
  }

  /** The number of tokens of a chat. Formats add about three tokens to each message, and three to begin the answer. */
  countMessages(messages: Iterable<ChatMessage>): number {
    let tokens = 3
    for (const message of messages) {
      tokens += 3 + textsOf(message).reduce((sum, text) => sum + this.count(text), 0)
    }
    return tokens
  }
}

function textsOf(message: ChatMessage): string[] {
  if (typeof message === 'string') return [message]
  const { role = '', content, tool_calls: calls } = message
  const parts = typeof content === 'string' ? [content] : (content ?? [])
  const texts = parts.map((part) => (typeof part === 'string' ? part : (part.text ?? '')))
  return [role, ...texts, ...(calls === undefined ? [] : [JSON.stringify(calls)])]
}

/** The number of tokens of a text; an estimate if the model's vocabulary is not published. */
export async function countTokens(text: string | Uint8Array, model = 'gpt-4o'): Promise<number> {
  return (await TokenCounter.load(model)).count(text)
}
