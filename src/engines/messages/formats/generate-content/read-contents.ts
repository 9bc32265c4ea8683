/** Converts the contents of a request of vendor D to turns. */
import type {
  AudioBlock,
  Block,
  DocumentBlock,
  ImageBlock,
  MediaSource,
  ResultPart,
  TextBlock,
  Turn,
} from '../../chat.ts'
import {
  booleanAt,
  field,
  type JsonObject,
  listAt,
  needList,
  objectAt,
  stringAt,
} from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { isSealedThought, openThoughts } from './sealed-thoughts.ts'

/** Members of parts that other vendors have. A part may have others, which describe it. */
const known: ReadonlySet<string> = new Set([
  ...['text', 'thought', 'thoughtSignature', 'inlineData', 'fileData', 'functionCall'],
  ...['functionResponse', 'videoMetadata', 'partMetadata', 'mediaResolution'],
])

type Media = ImageBlock | DocumentBlock | AudioBlock

const textBlocks = (text: string): TextBlock[] =>
  text.trim() === '' ? [] : [{ type: 'text', text }]

/** Reads the texts of the system. @throws LlmError 400 for other parts */
export function readSystem(body: unknown): TextBlock[] {
  return listAt(objectAt(body, 'systemInstruction'), 'parts').flatMap((part, at) => {
    const text = stringAt(part, 'text')
    if (text === undefined) {
      throw unsupportedPart(`systemInstruction.parts[${at}]`, 'parts other than texts')
    }
    return textBlocks(text)
  })
}

/** @throws LlmError 400 for parts that only vendor D has */
export function readContents(body: unknown): Turn[] {
  const reader = new ContentReader()
  return needList(body, 'contents').flatMap((content, at) =>
    reader.turn(content, `contents[${at}]`),
  )
}

/** Reads contents in order. Calls without ids get some, because only the order says which result belongs to which. */
class ContentReader {
  #count = 0
  /** Ids of the calls without a result so far. */
  readonly #open = new Set<string>()
  /** The ids of all calls of a function, in order, and how many of them have got a result by the name. */
  readonly #byName = new Map<string, { readonly ids: string[]; next: number }>()

  turn(content: unknown, path: string): Turn[] {
    const role = stringAt(content, 'role') ?? 'user'
    if (role !== 'user' && role !== 'model' && role !== 'function') {
      throw new LlmError(400, `${path}.role must be user or model`)
    }
    const read: Block[] = []
    let isSigned = false
    for (const [at, part] of listAt(content, 'parts').entries()) {
      const sealed = sealedThoughts(part, isSigned)
      isSigned ||= sealed.length > 0
      read.push(...sealed, ...this.#part(part, `${path}.parts[${at}]`))
    }
    // Signatures repeat the thoughts, which have none themselves.
    const blocks = isSigned ? read.filter((block) => !isUnsigned(block)) : read
    return blocks.length === 0 ? [] : [{ role: role === 'model' ? 'assistant' : 'user', blocks }]
  }

  #part(part: unknown, path: string): Block[] {
    const other = Object.keys(part as JsonObject).find((name) => !known.has(name))
    if (other !== undefined) throw unsupportedPart(path, `parts with ${other}`)
    const text = stringAt(part, 'text')
    if (booleanAt(part, 'thought') === true) {
      const isSealed = isSealedThought(stringAt(part, 'thoughtSignature') ?? '')
      return isSealed || text === undefined || text === '' ? [] : [{ type: 'thinking', text }]
    }
    if (text !== undefined) return textBlocks(text)
    const media = mediaOf(part, path)
    if (media !== undefined) return [media]
    const call = objectAt(part, 'functionCall')
    if (call !== undefined) return [this.#call(call)]
    const response = objectAt(part, 'functionResponse')
    return response === undefined ? [] : [this.#result(response, path)]
  }

  #call(call: JsonObject): Block {
    const name = stringAt(call, 'name') ?? ''
    const id = stringAt(call, 'id') ?? `call_${++this.#count}`
    this.#open.add(id)
    const calls = this.#byName.get(name)
    if (calls === undefined) this.#byName.set(name, { ids: [id], next: 0 })
    else calls.ids.push(id)
    return { type: 'tool-call', id, name, input: field(call, 'args') ?? {} }
  }

  #result(response: JsonObject, path: string): Block {
    const name = stringAt(response, 'name') ?? ''
    const given = stringAt(response, 'id')
    const id = this.#answered(given, name)
    const files = listAt(response, 'parts').flatMap(
      (part, at) => mediaOf(part, `${path}.functionResponse.parts[${at}]`) ?? [],
    )
    const { text, isError } = outcomeOf(objectAt(response, 'response') ?? {})
    const content: ResultPart[] = [...textBlocks(text), ...files]
    return {
      type: 'tool-result',
      id: id ?? given ?? name,
      content,
      ...(isError && { isError }),
    }
  }

  /** Returns the id of the call that a result belongs to: the named one, otherwise the next one of the function. */
  #answered(given: string | undefined, name: string): string | undefined {
    if (given !== undefined && this.#open.delete(given)) return given
    const calls = this.#byName.get(name)
    while (calls !== undefined && calls.next < calls.ids.length) {
      const id = calls.ids[calls.next++]
      if (id !== undefined && this.#open.delete(id)) return id
    }
    return undefined
  }
}

const isUnsigned = (block: Block): boolean =>
  block.type === 'thinking' && block.signature === undefined

/**
 * Returns the thoughts in the signature of a part. A call repeats those before it, because many clients drop them.
 * `isSigned`: whether the content has had thoughts with a signature.
 */
function sealedThoughts(part: unknown, isSigned: boolean): Block[] {
  const signature = stringAt(part, 'thoughtSignature')
  if (signature === undefined || !isSealedThought(signature)) return []
  const isOfCall = objectAt(part, 'functionCall') !== undefined
  return isOfCall && isSigned ? [] : openThoughts(signature)
}

/** Members that have the text of a result if they are its only ones. */
const resultTexts = ['output', 'result', 'content', 'error'] as const

/** Returns a result as a text: that of its only member, otherwise all of it as JSON. */
function outcomeOf(response: JsonObject): { readonly text: string; readonly isError: boolean } {
  const names = Object.keys(response)
  const isError = names.length === 1 && names[0] === 'error'
  const name = resultTexts.find((one) => one === names[0] && names.length === 1)
  const text = name === undefined ? undefined : stringAt(response, name)
  return { text: text ?? (names.length === 0 ? '' : JSON.stringify(response)), isError }
}

/** Returns the image, the sound or the document of a part. */
function mediaOf(part: unknown, path: string): Media | undefined {
  const data = objectAt(part, 'inlineData')
  const file = objectAt(part, 'fileData')
  const holder = data ?? file
  if (holder === undefined) return undefined
  const mediaType = stringAt(holder, 'mimeType') ?? 'application/octet-stream'
  if (data !== undefined && mediaType.startsWith('audio/')) {
    const format = mediaType.slice('audio/'.length).replace(/;.*$/, '').replace(/^x-/, '')
    return { type: 'audio', data: stringAt(data, 'data') ?? '', format, path }
  }
  if (/^(?:audio|video)\//.test(mediaType))
    throw unsupportedPart(path, `files of type ${mediaType}`)
  const source: MediaSource =
    data === undefined
      ? { type: 'url', url: stringAt(file, 'fileUri') ?? '', mediaType }
      : { type: 'data', mediaType, data: standardBase64(stringAt(data, 'data') ?? '') }
  if (mediaType.startsWith('image/')) return { type: 'image', source, path }
  const name = stringAt(holder, 'displayName')
  return { type: 'document', source, path, ...(name !== undefined && { name }) }
}

/** Vendor D also accepts base64 with the characters for URLs. */
const standardBase64 = (data: string): string => data.replaceAll('-', '+').replaceAll('_', '/')
