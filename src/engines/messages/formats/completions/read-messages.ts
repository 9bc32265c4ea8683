/** Converts the messages of a chat completion request to the common form. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type {
  AudioBlock,
  Block,
  CacheLifetime,
  Chat,
  DocumentBlock,
  ImageBlock,
  TextBlock,
  ToolCallBlock,
  Turn,
} from '../../chat.ts'
import { readArguments } from '../../common/arguments.ts'
import { cacheOf } from '../../common/cache-control.ts'
import { audioBlock, sourceOfFile, sourceOfUrl, textBlock } from '../../common/media.ts'
import { field, listAt, objectAt, stringAt } from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { assistantScope, requestScope, type TextScope, textOfPart } from '../../mask/text-fields.ts'
import { readThinking } from './thinking.ts'

/**
 * Reads the content of a message: a string or a list of parts. `readPart` reads parts other than text. The texts
 * are those that guards have read in this scope.
 */
function readContent<Part>(
  content: unknown,
  path: string,
  readPart: (part: unknown, path: string) => readonly Part[],
  scope: TextScope = requestScope,
): (Part | TextBlock)[] {
  if (typeof content === 'string') return textBlock(content)
  if (!Array.isArray(content)) return []
  return content.flatMap((part: unknown, at): readonly (Part | TextBlock)[] => {
    const text = textOfPart(part, scope)
    const cache = cacheOf(part)
    const blocks = text === undefined ? readPart(part, `${path}[${at}]`) : textBlock(text)
    return cache === undefined ? blocks : blocks.map((block) => ({ ...block, cache }))
  })
}

/** Marks the last block that can be cached. */
function cached(blocks: readonly Block[], cache: CacheLifetime | undefined): readonly Block[] {
  const at = cache && blocks.findLastIndex(isCacheable)
  return blocks.map((block, position) => (position === at ? { ...block, cache } : block) as Block)
}

const isCacheable = ({ type }: Block): boolean =>
  type !== 'audio' && type !== 'thinking' && type !== 'redacted-thinking'

function refusePart(part: unknown, path: string): never {
  throw unsupportedPart(path, `parts of type ${String(field(part, 'type'))}`)
}

const textBlocks = (content: unknown, path: string, scope?: TextScope): TextBlock[] =>
  readContent(content, path, refusePart, scope)

/** Reads a part of the assistant other than text. Reasoning without a signature is dropped. */
const assistantPart = (part: unknown, path: string): TextBlock[] =>
  stringAt(part, 'text') === undefined && stringAt(part, 'type') !== 'thinking'
    ? refusePart(part, path)
    : []

/** Reads a part other than text, in a user message or a tool result. */
function mediaPart(part: unknown, path: string): (ImageBlock | DocumentBlock | AudioBlock)[] {
  if (field(part, 'image_url') !== undefined) return [imageBlock(part, path)]
  switch (stringAt(part, 'type')) {
    case 'input_audio':
      return [audioBlock(part, path)]
    case 'file': {
      const file = objectAt(part, 'file')
      const data = stringAt(file, 'file_data')
      const name = stringAt(file, 'filename')
      if (data === undefined) throw unsupportedPart(`${path}.file`, 'files without file_data')
      return [{ type: 'document', source: sourceOfFile(data, name), path, name }]
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
  if (source.type === 'data') return { type: 'image', source, path }
  // These fields extend the format: the URL of a file in an object store may not show its media type.
  const mediaType = mediaTypeFields.map((name) => stringAt(image, name)).find(Boolean)
  return { type: 'image', source: { ...source, mediaType }, path }
}

const mediaTypeFields = ['format', 'mime_type', 'content_type']

function toolCall(call: unknown, path: string): ToolCallBlock {
  const called = objectAt(call, 'function')
  const custom = objectAt(call, 'custom')
  const name = stringAt(called ?? custom, 'name')
  if (name === undefined) throw new LlmError(400, `${path}: the call names no tool`)
  const input =
    called === undefined
      ? { input: stringAt(custom, 'input') ?? '' }
      : readArguments(stringAt(called, 'arguments'))
  return { type: 'tool-call', id: stringAt(call, 'id') ?? '', name, input }
}

/** Collects the turns of a request. Providers require one turn for all results of parallel calls. */
class Messages {
  readonly system: TextBlock[] = []
  readonly turns: Turn[] = []
  #results: Block[] | undefined
  /** Generated id of the last `function_call`, because the format has no id for it. */
  #functionCall: string | undefined

  read(message: unknown, path: string): void {
    const role = stringAt(message, 'role')
    const content = field(message, 'content')
    if (role === 'tool') {
      this.#result(stringAt(message, 'tool_call_id') ?? '', message, path)
      return
    }
    if (role === 'function' && this.#functionCall !== undefined) {
      this.#result(this.#functionCall, message, path)
      return
    }
    this.#results = undefined
    if (role === 'system' || role === 'developer') {
      this.#system(textBlocks(content, `${path}.content`), cacheOf(message))
    } else if (role === 'assistant') {
      this.#push(role, cached(this.#assistant(message, path), cacheOf(message)))
    } else if (role === 'user' || role === 'function') {
      const blocks = readContent(content, `${path}.content`, mediaPart)
      this.#push('user', cached(blocks, cacheOf(message)))
    } else {
      throw new LlmError(400, `messages: unknown role ${String(role)}`)
    }
  }

  #push(role: Turn['role'], blocks: readonly Block[]): void {
    if (blocks.length > 0) this.turns.push({ role, blocks })
  }

  /** A message of the system belongs to its place if others precede it. */
  #system(blocks: readonly TextBlock[], whole: CacheLifetime | undefined): void {
    const cache = whole ?? blocks.findLast((block) => block.cache !== undefined)?.cache
    const joined = textBlock(blocks.map(({ text }) => text).join('\n'))
    const texts = joined.map((block) => (cache === undefined ? block : { ...block, cache }))
    if (this.turns.length === 0) appendAll(this.system, texts)
    else if (texts.length > 0) this.turns.push({ role: 'system', blocks: texts })
  }

  #result(id: string, message: unknown, path: string): void {
    if (this.#results === undefined) {
      this.#results = []
      this.turns.push({ role: 'user', blocks: this.#results })
    }
    const content = readContent(field(message, 'content'), `${path}.content`, mediaPart)
    // Parts of results cannot be cached alone.
    const ofParts = content.map((part) => (part.type === 'audio' ? undefined : part.cache))
    const cache = cacheOf(message) ?? ofParts.findLast((one) => one !== undefined)
    this.#results.push({ type: 'tool-result', id, content, ...(cache && { cache }) })
  }

  #assistant(message: unknown, path: string): Block[] {
    if (objectAt(message, 'audio') !== undefined) {
      throw unsupportedPart(`${path}.audio`, 'references to earlier audio answers')
    }
    const calls = listAt(message, 'tool_calls')
    const blocks: Block[] = [
      ...readThinking(message),
      ...readContent(field(message, 'content'), `${path}.content`, assistantPart, assistantScope),
      ...textBlock(stringAt(message, 'refusal')),
      ...listAt(message, 'images').map((image, at) => imageBlock(image, `${path}.images[${at}]`)),
      ...calls.map((call, at) => toolCall(call, `${path}.tool_calls[${at}]`)),
    ]
    const called = objectAt(message, 'function_call')
    if (called !== undefined) {
      this.#functionCall = `call_${path.replace(/\D/g, '')}`
      blocks.push(toolCall({ id: this.#functionCall, function: called }, `${path}.function_call`))
    }
    return blocks
  }
}

export function readMessages(messages: readonly unknown[]): Pick<Chat, 'system' | 'turns'> {
  const read = new Messages()
  for (const [at, message] of messages.entries()) read.read(message, `messages[${at}]`)
  return { system: read.system, turns: read.turns }
}
