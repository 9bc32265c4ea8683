/** The messages of a request for a chat completion -> the common form. */
import type {
  AudioBlock,
  Block,
  Chat,
  DocumentBlock,
  ImageBlock,
  TextBlock,
  ToolCallBlock,
  Turn,
} from '../../chat.ts'
import { field, listAt, objectAt, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { readArguments } from '../arguments.ts'
import { sourceOfFile, sourceOfUrl } from '../media.ts'
import { unsupportedPart } from '../unsupported-part.ts'
import { readThinking } from './thinking.ts'

const isBlank = (text: string): boolean => text.trim() === ''

const textBlock = (text: string): TextBlock[] => (isBlank(text) ? [] : [{ type: 'text', text }])

/** A content: a text, or parts, of which `readPart` reads those that are no text. */
function readContent<Part>(
  content: unknown,
  path: string,
  readPart: (part: unknown, path: string) => readonly Part[],
): (Part | TextBlock)[] {
  if (typeof content === 'string') return textBlock(content)
  if (!Array.isArray(content)) return []
  return content.flatMap((part: unknown, at): readonly (Part | TextBlock)[] => {
    const text = typeof part === 'string' ? part : textOfPart(part)
    return text === undefined ? readPart(part, `${path}[${at}]`) : textBlock(text)
  })
}

const textOfPart = (part: unknown): string | undefined =>
  stringAt(part, 'text') ?? stringAt(part, 'refusal')

function refusePart(part: unknown, path: string): never {
  throw unsupportedPart(path, `parts of type ${String(field(part, 'type'))}`)
}

const textBlocks = (content: unknown, path: string): TextBlock[] =>
  readContent(content, path, refusePart)

/** Parts that are no text: the same in messages of users and in results of tools. */
function mediaPart(part: unknown, path: string): (ImageBlock | DocumentBlock | AudioBlock)[] {
  if (field(part, 'image_url') !== undefined) return [imageBlock(part, path)]
  switch (stringAt(part, 'type')) {
    case 'input_audio': {
      const audio = objectAt(part, 'input_audio')
      const data = stringAt(audio, 'data')
      if (data === undefined) throw new LlmError(400, `${path}.input_audio.data must be a string`)
      return [{ type: 'audio', data, format: stringAt(audio, 'format') ?? 'wav', path }]
    }
    case 'file': {
      const file = objectAt(part, 'file')
      const data = stringAt(file, 'file_data')
      const name = stringAt(file, 'filename')
      if (data === undefined) throw unsupportedPart(`${path}.file`, 'files without file_data')
      const source = sourceOfFile(data, name)
      return [{ type: 'document', source, path, ...(name !== undefined && { name }) }]
    }
    default:
      return refusePart(part, path)
  }
}

function imageBlock(part: unknown, path: string): ImageBlock {
  const image = field(part, 'image_url')
  const url = typeof image === 'string' ? image : stringAt(image, 'url')
  if (url === undefined) throw new LlmError(400, `${path}.image_url.url must be a string`)
  const source = sourceOfUrl(url)
  // Not of the format, but what the names of files in a store do not say.
  const mediaType = mediaTypeFields.map((name) => stringAt(image, name)).find(Boolean)
  const told = source.type === 'url' && mediaType !== undefined ? { mediaType } : {}
  return { type: 'image', source: { ...source, ...told }, path }
}

const mediaTypeFields = ['format', 'mime_type', 'content_type']

function toolCall(call: unknown, path: string): ToolCallBlock {
  const made = objectAt(call, 'function')
  const custom = objectAt(call, 'custom')
  const name = stringAt(made ?? custom, 'name')
  if (name === undefined) throw new LlmError(400, `${path}: the call names no tool`)
  const input =
    made === undefined
      ? { input: stringAt(custom, 'input') ?? '' }
      : readArguments(stringAt(made, 'arguments'))
  return { type: 'tool-call', id: stringAt(call, 'id') ?? '', name, input }
}

/** Results of parallel calls share one turn, as providers demand. */
class Messages {
  readonly system: TextBlock[] = []
  readonly turns: Turn[] = []
  #results: Block[] | undefined
  /** Id of a call by the older field, which has none. */
  #functionCall: string | undefined

  read(message: unknown, path: string): void {
    const role = stringAt(message, 'role')
    const content = field(message, 'content')
    if (role === 'tool') {
      this.#result(stringAt(message, 'tool_call_id') ?? '', content, path)
      return
    }
    if (role === 'function' && this.#functionCall !== undefined) {
      this.#result(this.#functionCall, content, path)
      return
    }
    this.#results = undefined
    if (role === 'system' || role === 'developer') {
      const texts = textBlocks(content, `${path}.content`).map(({ text }) => text)
      this.system.push(...textBlock(texts.join('\n')))
    } else if (role === 'assistant') {
      this.#push(role, this.#assistant(message, path))
    } else if (role === 'user' || role === 'function') {
      this.#push('user', readContent(content, `${path}.content`, mediaPart))
    } else {
      throw new LlmError(400, `messages: unknown role ${String(role)}`)
    }
  }

  #push(role: Turn['role'], blocks: readonly Block[]): void {
    if (blocks.length > 0) this.turns.push({ role, blocks })
  }

  #result(id: string, value: unknown, path: string): void {
    if (this.#results === undefined) {
      this.#results = []
      this.turns.push({ role: 'user', blocks: this.#results })
    }
    const content = readContent(value, `${path}.content`, mediaPart)
    this.#results.push({ type: 'tool-result', id, content })
  }

  #assistant(message: unknown, path: string): Block[] {
    if (objectAt(message, 'audio') !== undefined) {
      throw unsupportedPart(`${path}.audio`, 'references to earlier audio answers')
    }
    const calls = listAt(message, 'tool_calls')
    const blocks: Block[] = [
      ...readThinking(message),
      ...textBlocks(field(message, 'content'), `${path}.content`),
      ...textBlock(stringAt(message, 'refusal') ?? ''),
      ...listAt(message, 'images').map((image, at) => imageBlock(image, `${path}.images[${at}]`)),
      ...calls.map((call, at) => toolCall(call, `${path}.tool_calls[${at}]`)),
    ]
    const made = objectAt(message, 'function_call')
    if (made !== undefined) {
      this.#functionCall = `call_${path.replace(/\D/g, '')}`
      blocks.push(toolCall({ id: this.#functionCall, function: made }, `${path}.function_call`))
    }
    return blocks
  }
}

export function readMessages(messages: readonly unknown[]): Pick<Chat, 'system' | 'turns'> {
  const read = new Messages()
  for (const [at, message] of messages.entries()) read.read(message, `messages[${at}]`)
  return { system: read.system, turns: read.turns }
}
