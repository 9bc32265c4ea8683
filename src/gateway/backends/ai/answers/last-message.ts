/** Reads the last message of the user, the only part of a request that may differ from a similar one. */
import { isObject, type JsonObject } from '../../../../engines/messages/json/json.ts'

interface LastMessage {
  readonly text: string
  /** The request without the text. */
  readonly rest: JsonObject
}

/**
 * Maximum number of characters of a message that is compared with others, about 500 tokens. Embedding models ignore the
 * text beyond their limit.
 */
const maxLength = 2_000

/** Members with the messages of a request, by format. */
const lists = ['messages', 'input', 'contents'] as const
/** Types of the parts of a message that have nothing but a text. */
const textTypes: readonly unknown[] = [undefined, 'text', 'input_text']

/**
 * Returns undefined if a request does not end with a message of the user that has a text and nothing else, such as an
 * image or the result of a tool, or if the text is too long.
 */
export function lastMessageOf(body: JsonObject): LastMessage | undefined {
  const name = lists.find((one) => body[one] != null)
  const list = name === undefined ? undefined : body[name]
  if (name === undefined) return undefined
  if (typeof list === 'string') return bounded(list, { ...body, [name]: null })
  const last: unknown = Array.isArray(list) ? list.at(-1) : undefined
  if (!Array.isArray(list) || !isObject(last)) return undefined
  const { role = name === 'contents' ? 'user' : undefined } = last
  const member = name === 'contents' ? 'parts' : 'content'
  const found = role === 'user' ? textIn(last[member]) : undefined
  if (found === undefined) return undefined
  const rest = { ...last, [member]: found.rest }
  return bounded(found.text, { ...body, [name]: [...list.slice(0, -1), rest] })
}

const bounded = (text: string, rest: JsonObject): LastMessage | undefined =>
  text.trim() === '' || text.length > maxLength ? undefined : { text, rest }

function textIn(content: unknown): { readonly text: string; readonly rest: unknown } | undefined {
  if (typeof content === 'string') return { text: content, rest: null }
  if (!Array.isArray(content)) return undefined
  const texts: string[] = []
  const rest: unknown[] = []
  for (const part of content) {
    if (!isObject(part) || typeof part.text !== 'string' || !textTypes.includes(part.type)) {
      return undefined
    }
    texts.push(part.text)
    rest.push({ ...part, text: null })
  }
  return { text: texts.join('\n'), rest }
}
