/** Converts the system texts and messages of a request in the messages format to the common form. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type {
  Block,
  Chat,
  DocumentBlock,
  ImageBlock,
  MediaSource,
  ResultPart,
  SearchResultBlock,
  TextBlock,
  Turn,
} from '../../chat.ts'
import { cacheOf } from '../../common/cache-control.ts'
import { booleanAt, field, listAt, needList, objectAt, stringAt } from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'

/** Reads the content of a message: a string or a list of blocks. `read` reads blocks other than text. */
function readContent<OneBlock>(
  content: unknown,
  path: string,
  read: (block: unknown, path: string) => readonly OneBlock[],
): (OneBlock | TextBlock)[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return []
  return content.flatMap((block: unknown, at): readonly (OneBlock | TextBlock)[] =>
    stringAt(block, 'type') === 'text' ? textBlock(block) : read(block, `${path}[${at}]`),
  )
}

function textBlock(block: unknown): TextBlock[] {
  const text = stringAt(block, 'text')
  return text === undefined ? [] : [{ type: 'text', text, cache: cacheOf(block) }]
}

function refuseBlock(block: unknown, path: string): never {
  throw unsupportedPart(path, `blocks of type ${String(field(block, 'type'))}`)
}

const textBlocks = (content: unknown, path: string): TextBlock[] =>
  readContent(content, path, refuseBlock)

function sourceOf(block: unknown, path: string): MediaSource {
  const source = objectAt(block, 'source')
  if (source === undefined) throw new LlmError(400, `${path}.source must be an object`)
  const type = stringAt(source, 'type')
  const url = stringAt(source, 'url')
  if (url !== undefined) return { type: 'url', url }
  const data = type === 'text' || type === 'base64' ? stringAt(source, 'data') : undefined
  if (data === undefined) {
    throw unsupportedPart(`${path}.source`, `sources of type ${String(type)}`)
  }
  const mediaType = stringAt(source, 'media_type') ?? 'text/plain'
  const isText = type === 'text'
  return { type: 'data', mediaType, data: isText ? Buffer.from(data).toString('base64') : data }
}

function imageBlock(block: unknown, path: string): ImageBlock {
  return { type: 'image', source: sourceOf(block, path), path, cache: cacheOf(block) }
}

/** Reads a document. One that consists of blocks becomes a text with title and context, then the blocks. */
function documentBlocks(block: unknown, path: string): (TextBlock | ImageBlock | DocumentBlock)[] {
  const name = stringAt(block, 'title')
  const context = stringAt(block, 'context')
  const parts = field(objectAt(block, 'source'), 'content')
  if (parts !== undefined) {
    const about = [name, context].filter((text) => text !== undefined && text !== '')
    const head = about.length === 0 ? [] : [{ type: 'text' as const, text: about.join('\n') }]
    return [...head, ...readContent(parts, `${path}.source.content`, contentPart)]
  }
  const source = sourceOf(block, path)
  const isCited = field(objectAt(block, 'citations'), 'enabled') === true
  return [{ type: 'document', source, path, name, context, isCited, cache: cacheOf(block) }]
}

function contentPart(block: unknown, path: string): ImageBlock[] {
  return stringAt(block, 'type') === 'image' ? [imageBlock(block, path)] : refuseBlock(block, path)
}

function searchResult(block: unknown, path: string): SearchResultBlock {
  const texts = textBlocks(field(block, 'content'), `${path}.content`).map(({ text }) => text)
  const title = stringAt(block, 'title') ?? ''
  const source = stringAt(block, 'source') ?? ''
  return { type: 'search-result', title, source, texts, cache: cacheOf(block) }
}

function resultPart(block: unknown, path: string): ResultPart[] {
  switch (stringAt(block, 'type')) {
    case 'image':
      return [imageBlock(block, path)]
    case 'document':
      return documentBlocks(block, path)
    case 'search_result':
      return [searchResult(block, path)]
    default:
      return refuseBlock(block, path)
  }
}

function toolResult(block: unknown, path: string): Block {
  return {
    type: 'tool-result',
    id: stringAt(block, 'tool_use_id') ?? '',
    content: readContent(field(block, 'content'), `${path}.content`, resultPart),
    isError: booleanAt(block, 'is_error'),
    cache: cacheOf(block),
  }
}

function toolCall(block: unknown, path: string): Block {
  const name = stringAt(block, 'name')
  if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
  const id = stringAt(block, 'id') ?? ''
  const input = field(block, 'input') ?? {}
  return { type: 'tool-call', id, name, input, cache: cacheOf(block) }
}

/** Reduces search results to titles and URLs: only the provider that searched can read their content. */
function foundPages(block: unknown): TextBlock[] {
  // Guards read the URLs of results of this type, and of no other.
  const pages = listAt(block, 'content')
    .filter((page) => stringAt(page, 'type') === 'web_search_result')
    .map((page) => `${stringAt(page, 'title') ?? ''} ${stringAt(page, 'url') ?? ''}`)
  if (pages.length === 0) return []
  return [{ type: 'text', text: ['Found on the web:', ...pages].join('\n') }]
}

function readBlock(block: unknown, path: string): readonly Block[] {
  switch (stringAt(block, 'type')) {
    case 'tool_use':
      return [toolCall(block, path)]
    case 'tool_result':
      return [toolResult(block, path)]
    case 'thinking':
      return [
        {
          type: 'thinking',
          text: stringAt(block, 'thinking') ?? '',
          signature: stringAt(block, 'signature'),
        },
      ]
    case 'redacted_thinking': {
      const data = stringAt(block, 'data')
      return data === undefined ? [] : [{ type: 'redacted-thinking', data }]
    }
    case 'server_tool_use':
      // A search call is dropped, because its result follows in another block.
      return stringAt(block, 'name') === 'web_search' ? [] : refuseBlock(block, path)
    case 'web_search_tool_result':
      return foundPages(block)
    default:
      return resultPart(block, path)
  }
}

/** @throws LlmError 400 for blocks that only the messages format has. */
export function readMessages(body: unknown): Pick<Chat, 'system' | 'turns'> {
  const system = textBlocks(field(body, 'system'), 'system')
  const turns: Turn[] = []
  for (const [at, message] of needList(body, 'messages').entries()) {
    const role = stringAt(message, 'role')
    const content = field(message, 'content')
    const path = `messages[${at}].content`
    if (role === 'system') {
      const blocks = textBlocks(content, path)
      if (turns.length === 0) appendAll(system, blocks)
      else if (blocks.length > 0) turns.push({ role, blocks })
    } else if (role === 'user' || role === 'assistant') {
      const blocks = readContent(content, path, readBlock)
      if (blocks.length > 0) turns.push({ role, blocks })
    } else throw new LlmError(400, `messages: unknown role ${String(role)}`)
  }
  return { system, turns }
}
