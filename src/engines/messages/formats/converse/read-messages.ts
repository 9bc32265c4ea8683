/** Converts the messages of a Converse request to turns. */
import type {
  AudioBlock,
  Block,
  Cacheable,
  CacheLifetime,
  DocumentBlock,
  ImageBlock,
  MediaSource,
  ResultPart,
  SearchResultBlock,
  TextBlock,
  Turn,
} from '../../chat.ts'
import { typesByExtension } from '../../common/media.ts'
import { field, isObject, listAt, needList, objectAt, stringAt } from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'

const textBlocks = (text: string): TextBlock[] =>
  text.trim() === '' ? [] : [{ type: 'text', text }]

/** Returns the lifetime of a cache point. */
const lifetimeOf = (point: unknown): CacheLifetime =>
  stringAt(point, 'ttl') === '1h' ? '1h' : '5m'

/** Reads items; a cache point marks the item before it. */
export function readPoints<Item extends object>(
  list: readonly unknown[],
  read: (item: unknown, at: number) => readonly Item[],
): Item[] {
  const items: Item[] = []
  for (const [at, one] of list.entries()) {
    const point = objectAt(one, 'cachePoint')
    const last = items.at(-1)
    if (point === undefined) items.push(...read(one, at))
    else if (last !== undefined) {
      items[items.length - 1] = { ...last, cache: lifetimeOf(point) } satisfies Cacheable
    }
  }
  return items
}

/** @throws LlmError 400 for blocks that only Converse has */
export const readSystem = (body: unknown): TextBlock[] =>
  readPoints(listAt(body, 'system'), (block, at) => {
    const text = stringAt(block, 'text')
    if (text === undefined) throw unsupportedPart(`system[${at}]`, 'blocks other than texts')
    return textBlocks(text)
  })

/** @throws LlmError 400 for blocks that only Converse has */
export function readConverseMessages(body: unknown): Turn[] {
  return needList(body, 'messages').flatMap((message, at): Turn[] => {
    const role = stringAt(message, 'role')
    if (role !== 'user' && role !== 'assistant') {
      throw new LlmError(400, `messages[${at}].role must be user or assistant`)
    }
    const path = `messages[${at}].content`
    const blocks = readPoints(listAt(message, 'content'), (block, index) =>
      readBlock(block, `${path}[${index}]`),
    )
    return blocks.length === 0 ? [] : [{ role, blocks }]
  })
}

function readBlock(block: unknown, path: string): readonly Block[] {
  const result = objectAt(block, 'toolResult')
  if (result !== undefined) {
    const content = listAt(result, 'content').flatMap((part, at) =>
      readPart(part, `${path}.toolResult.content[${at}]`),
    )
    const isError = stringAt(result, 'status') === 'error' ? true : undefined
    return [{ type: 'tool-result', id: stringAt(result, 'toolUseId') ?? '', content, isError }]
  }
  const call = objectAt(block, 'toolUse')
  if (call !== undefined) {
    const id = stringAt(call, 'toolUseId') ?? ''
    const input = field(call, 'input') ?? {}
    return [{ type: 'tool-call', id, name: stringAt(call, 'name') ?? '', input }]
  }
  const reasoning = objectAt(block, 'reasoningContent')
  if (reasoning !== undefined) {
    const data = stringAt(reasoning, 'redactedContent')
    if (data !== undefined) return [{ type: 'redacted-thinking', data }]
    const thought = objectAt(reasoning, 'reasoningText')
    const text = stringAt(thought, 'text') ?? ''
    return [{ type: 'thinking', text, signature: stringAt(thought, 'signature') }]
  }
  const cited = objectAt(block, 'citationsContent')
  if (cited !== undefined) {
    return textBlocks(
      listAt(cited, 'content')
        .map((part) => stringAt(part, 'text') ?? '')
        .join(''),
    )
  }
  const audio = objectAt(block, 'audio')
  return audio === undefined ? readPart(block, path) : [readAudio(audio, `${path}.audio`)]
}

/** Reads a block that results of tools may have, too. */
function readPart(block: unknown, path: string): ResultPart[] {
  const text = stringAt(block, 'text')
  if (text !== undefined) return textBlocks(text)
  const json = field(block, 'json')
  if (json !== undefined) return textBlocks(JSON.stringify(json))
  const image = objectAt(block, 'image')
  if (image !== undefined) return [readImage(image, `${path}.image`)]
  const document = objectAt(block, 'document')
  if (document !== undefined) return [readDocument(document, `${path}.document`)]
  const found = objectAt(block, 'searchResult')
  if (found !== undefined) return [readSearchResult(found)]
  const [name = ''] = isObject(block) ? Object.keys(block) : []
  throw unsupportedPart(path, `blocks with ${name}`)
}

function sourceOf(holder: unknown, mediaType: string, path: string): MediaSource {
  const source = objectAt(holder, 'source')
  const data = stringAt(source, 'bytes')
  if (data !== undefined) return { type: 'data', mediaType, data }
  const url = stringAt(objectAt(source, 's3Location'), 'uri')
  if (url === undefined) throw unsupportedPart(`${path}.source`, 'sources of this kind')
  return { type: 'url', url, mediaType }
}

function readImage(image: unknown, path: string): ImageBlock {
  const source = sourceOf(image, `image/${stringAt(image, 'format') ?? 'png'}`, path)
  return { type: 'image', source, path }
}

/** A document is a file, or a text. */
function readDocument(document: unknown, path: string): DocumentBlock {
  const format = stringAt(document, 'format') ?? 'txt'
  const text = stringAt(objectAt(document, 'source'), 'text')
  const source: MediaSource =
    text === undefined
      ? sourceOf(document, typesByExtension.get(format) ?? 'application/octet-stream', path)
      : { type: 'data', mediaType: 'text/plain', data: Buffer.from(text).toString('base64') }
  const isCited = field(objectAt(document, 'citations'), 'enabled') === true
  const name = stringAt(document, 'name')
  return { type: 'document', source, path, name, context: stringAt(document, 'context'), isCited }
}

function readAudio(audio: unknown, path: string): AudioBlock {
  const data = stringAt(objectAt(audio, 'source'), 'bytes')
  if (data === undefined) throw unsupportedPart(`${path}.source`, 'sources of this kind')
  return { type: 'audio', data, format: stringAt(audio, 'format') ?? 'wav', path }
}

function readSearchResult(found: unknown): SearchResultBlock {
  const texts = listAt(found, 'content').flatMap((part) => stringAt(part, 'text') ?? [])
  const title = stringAt(found, 'title') ?? ''
  return { type: 'search-result', title, source: stringAt(found, 'source') ?? '', texts }
}
