/**
 * Random requests in which every string is a secret, with random types of parts, random fields and random roles.
 * `textsOf` finds what a provider gets as text, independently of the code that decides what guards read.
 */
import type {
  ChatFormatName,
  ProviderFormatName,
} from '../../src/engines/messages/formats/index.ts'
import type { Random } from '../fuzz/support/random.ts'

type Json = Record<string, unknown>

const types: readonly (string | undefined)[] = [
  ...['text', 'input_text', 'output_text', 'refusal', 'reasoning_text', 'summary_text', 'thinking'],
  ...['redacted_thinking', 'reasoning', 'image', 'image_url', 'input_image', 'document', 'file'],
  ...['input_file', 'input_audio', 'output_audio', 'search_result', 'tool_use', 'tool_result'],
  ...['server_tool_use', 'web_search_tool_result', 'web_search_result', 'new_part', undefined],
]
const items: readonly (string | undefined)[] = [
  ...['message', 'reasoning', 'function_call', 'function_call_output', 'custom_tool_call'],
  ...['custom_tool_call_output', 'web_search_call', 'program_output', undefined],
]
const roles = ['user', 'user', 'assistant', 'system', 'developer', 'tool', 'function', undefined]
const textFields = [
  ...['text', 'refusal', 'transcript', 'thinking', 'title', 'context', 'data', 'url', 'source'],
  ...[
    'file_data',
    'file_url',
    'filename',
    'image_url',
    'signature',
    'summary',
    'new_field',
    'reason',
  ],
  ...['content', 'output', 'input', 'arguments', 'reasoning_content', 'encrypted_content', 'name'],
]
const mediaTypes = [
  'TEXT/plain',
  'text/plain',
  'text/csv',
  'application/json',
  'image/png',
  'application/pdf',
]
const fileNames = ['a.txt', 'b.MD', 'c.pdf', 'd.json', 'e']

/** Makes requests; each secret has a number of its own. */
class Maker {
  readonly #random: Random
  /** Few types, because a provider refuses requests with a single part that it does not know. */
  readonly #types: readonly (string | undefined)[]
  #next = 0

  constructor(random: Random) {
    this.#random = random
    this.#types = ['text', random.pick(types), random.pick(types)]
  }

  secret(): string {
    return `SECRET${this.#next++}`
  }

  #encoded(): string {
    const base64 = Buffer.from(`a ${this.secret()}.`).toString('base64')
    if (this.#random.oneIn(2)) return base64
    return `data:${this.#random.pick(mediaTypes)};base64,${base64}`
  }

  #list(limit: number, make: () => unknown): unknown[] {
    return Array.from({ length: this.#random.below(limit) }, make)
  }

  #source(): Json {
    const random = this.#random
    const type = random.pick(['base64', 'text', 'url', 'content', 'new'])
    const media_type = random.pick([...mediaTypes, undefined])
    const data = random.oneIn(2) ? this.#encoded().replace(/^data:.*,/, '') : this.secret()
    if (type === 'content') return { type, content: this.content(2) }
    if (type === 'url') return { type, url: random.oneIn(2) ? this.secret() : this.#encoded() }
    return { type, ...(media_type && { media_type }), data }
  }

  #field(name: string, depth: number): unknown {
    const random = this.#random
    switch (name) {
      case 'content':
      case 'output':
      case 'new_field':
        return random.oneIn(2) ? this.content(depth + 1) : this.secret()
      case 'source':
        return random.oneIn(3) ? this.secret() : this.#source()
      case 'file_data':
      case 'file_url':
        return this.#encoded()
      case 'image_url':
        return random.oneIn(2) ? { url: this.#encoded() } : this.#encoded()
      case 'filename':
        return random.oneIn(2) ? random.pick(fileNames) : this.secret()
      case 'input':
        return random.oneIn(2) ? { a: this.secret() } : this.secret()
      case 'summary':
        return this.#list(3, () => ({ type: 'summary_text', text: this.secret() }))
      default:
        return this.secret()
    }
  }

  #search(): Json {
    const page = () => ({
      type: this.#random.pick(['web_search_result', 'new_page']),
      title: this.secret(),
      url: this.secret(),
    })
    return { type: 'web_search_tool_result', tool_use_id: 'a', content: this.#list(4, page) }
  }

  #part(depth: number): unknown {
    const random = this.#random
    if (random.oneIn(8)) return this.secret()
    const type = random.pick(this.#types)
    if (type === 'web_search_tool_result' && random.oneIn(2)) return this.#search()
    const names = [...this.#list(4, () => random.pick(textFields)), ...usualFields(type)]
    const fields = names.map((name) => [name, this.#field(String(name), depth)])
    const file = type === 'file' ? { file: { file_data: this.#encoded(), filename: 'a.txt' } } : {}
    const audio = type === 'input_audio' ? { input_audio: { data: 'AA==', format: 'wav' } } : {}
    const call = random.oneIn(2) ? { id: this.secret(), tool_use_id: this.secret() } : {}
    return { ...Object.fromEntries(fields), ...file, ...audio, ...call, ...(type && { type }) }
  }

  content(depth = 0): unknown {
    if (depth > 3 || this.#random.oneIn(4)) return this.secret()
    return this.#list(4, () => this.#part(depth))
  }

  #message(): Json {
    const random = this.#random
    const role = random.pick(roles)
    const names = this.#list(3, () => random.pick(textFields))
    const fields = names.map((name) => [name, this.#field(String(name), 1)])
    const call = { id: this.secret(), type: 'function' }
    const called = { name: this.secret(), arguments: `{"a":"${this.secret()}"}` }
    return {
      ...(random.oneIn(3) && Object.fromEntries(fields)),
      ...(role && { role }),
      content: this.content(),
      ...(random.oneIn(4) && { tool_calls: [{ ...call, function: called }] }),
      ...(random.oneIn(4) && { tool_call_id: this.secret() }),
    }
  }

  #item(): Json {
    const type = this.#random.pick(items)
    const id = this.secret()
    return {
      ...this.#message(),
      ...(type && { type }),
      ...(this.#random.oneIn(2) && { name: this.secret(), arguments: '{}', call_id: id }),
      ...(this.#random.oneIn(2) && { output: this.content(1) }),
    }
  }

  /** An object of a tool, whose names are its own. */
  #data(depth = 0): Json {
    const random = this.#random
    const names = this.#list(3, () =>
      random.pick(['id', 'name', 'type', 'output', 'error', 'text', this.secret()]),
    )
    const value = () => (depth < 2 && random.oneIn(3) ? [this.#data(depth + 1)] : this.secret())
    return Object.fromEntries(names.map((name) => [name, value()]))
  }

  /** A name of Gemini's API, in one of its two forms. */
  #either(name: string): string {
    if (this.#random.oneIn(2)) return name
    return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  }

  #blob(): Json {
    const data = Buffer.from(`a ${this.secret()}.`).toString('base64')
    const blob = { [this.#either('mimeType')]: this.#random.pick(mediaTypes), data }
    return { [this.#either('inlineData')]: blob }
  }

  #generatePart(): Json {
    const random = this.#random
    const thought = random.oneIn(4) && { thought: random.oneIn(2) }
    const signature = random.oneIn(4) && { [this.#either('thoughtSignature')]: this.secret() }
    const parts = random.oneIn(3) && { parts: [this.#blob()] }
    const result = { name: 'f', response: this.#data(), ...parts }
    const part = random.pick<Json>([
      { text: this.secret() },
      { text: this.secret() },
      this.#blob(),
      { [this.#either('functionCall')]: { name: 'f', args: { a: this.secret() } } },
      { [this.#either('functionResponse')]: result },
      { [this.#either('fileData')]: { fileUri: this.secret(), mimeType: 'image/png' } },
    ])
    return { ...part, ...thought, ...signature }
  }

  #generate(): Json {
    const parts = () => this.#list(4, () => this.#generatePart())
    const texts = () => this.#list(3, () => ({ text: this.secret() }))
    const content = () => {
      const role = this.#random.pick(['user', 'model', 'function', undefined])
      return { ...(role && { role }), parts: parts() }
    }
    return {
      model: 'm',
      [this.#either('systemInstruction')]: { parts: texts() },
      contents: this.#list(5, content),
    }
  }

  #conversePart(depth = 0): Json {
    const random = this.#random
    const bytes = Buffer.from(`a ${this.secret()}.`).toString('base64')
    const source = random.oneIn(2) ? { bytes } : { text: this.secret() }
    const document = {
      format: random.pick(['txt', 'md', 'pdf', 'html', 'TXT']),
      name: this.secret(),
      source,
      ...(random.oneIn(2) && { context: this.secret() }),
    }
    const content = this.#list(3, () => ({ text: this.secret() }))
    const parts = random.pick<Json>([
      { text: this.secret() },
      { document },
      { image: { format: 'png', source: { bytes } } },
      { searchResult: { source: this.secret(), title: this.secret(), content } },
      { json: this.#data() },
    ])
    if (depth > 0 || random.oneIn(2)) return parts
    const result = () => this.#list(4, () => this.#conversePart(1))
    return random.pick<Json>([
      { toolUse: { toolUseId: 'a', name: 'f', input: { a: this.secret() } } },
      { toolResult: { toolUseId: 'a', content: result() } },
      { reasoningContent: { reasoningText: { text: this.secret(), signature: this.secret() } } },
      { citationsContent: { content } },
      { cachePoint: { type: 'default' } },
    ])
  }

  #converse(): Json {
    const message = () => ({
      role: this.#random.pick(['user', 'assistant']),
      content: this.#list(4, () => this.#conversePart()),
    })
    const system = this.#list(3, () => ({ text: this.secret() }))
    return { model: 'm', system, messages: this.#list(5, message) }
  }

  request(format: ChatFormatName): Json {
    const base = {
      model: 'm',
      max_tokens: 50,
      ...(this.#random.oneIn(3) && { extra: this.content() }),
    }
    switch (format) {
      case 'Completions':
        return { ...base, messages: this.#list(5, () => this.#message()) }
      case 'InvokeModel':
      case 'Messages':
        return { ...base, system: this.content(), messages: this.#list(5, () => this.#message()) }
      case 'Responses':
        return { ...base, instructions: this.secret(), input: this.#list(5, () => this.#item()) }
      case 'TextCompletions':
        return { ...base, prompt: this.#random.oneIn(2) ? this.secret() : [this.secret()] }
      case 'GenerateContent':
        return this.#generate()
      case 'Converse':
        return this.#converse()
    }
  }
}

/** Fields that translations need in parts of a type, so that more requests pass. */
function usualFields(type: string | undefined): readonly string[] {
  if (type === 'document' || type === 'image') return ['source']
  if (type === 'search_result') return ['source', 'content', 'title']
  if (type === 'input_file') return ['file_data', 'filename']
  if (type?.endsWith('tool_result')) return ['content']
  if (type === 'tool_use') return ['name', 'input']
  return type === 'image_url' || type === 'input_image' ? ['image_url'] : ['text']
}

export const hiddenRequest = (format: ChatFormatName, random: Random): Json =>
  new Maker(random).request(format)

/** The fields of a provider's request with the conversation. */
const conversation: Readonly<Record<ProviderFormatName, readonly string[]>> = {
  completions: ['messages'],
  responses: ['instructions', 'input'],
  messages: ['system', 'messages'],
  converse: ['system', 'messages'],
  'generate-content': ['systemInstruction', 'contents'],
}
/** What is no text in requests of any provider: ids, names, arguments, reasoning, URLs. */
const otherFields = new Set([
  ...[
    'id',
    'tool_call_id',
    'tool_use_id',
    'toolUseId',
    'name',
    'type',
    'role',
    'tool_calls',
    'input',
  ],
  ...['args', 'thinking', 'thinking_blocks', 'reasoning_content', 'reasoningContent', 'signature'],
  ...[
    'thoughtSignature',
    'url',
    'fileUri',
    'uri',
    'media_type',
    'mimeType',
    'format',
    'cache_control',
  ],
  ...['reasoning_signature', 'redacted_thinking', 'call_id', 'arguments', 'file_url', 'image_url'],
  ...['detail', 'encrypted_content', 'summary'],
])
const textFormats = new Set<unknown>(['txt', 'md', 'csv', 'html'])
const textTypes = /^(?:text\/|application\/(?:json|xml))/i

/** Returns every text of a provider's request; text documents in base64 are decoded. */
export function textsOf(body: Json, provider: ProviderFormatName): string[] {
  return conversation[provider].flatMap((name) => textsIn(body[name], name, {}))
}

const decoded = (data: string): string => Buffer.from(data, 'base64').toString('utf8')

/** `holder` is the object with the value. */
function textsIn(value: unknown, name: string, holder: Json): string[] {
  if (typeof value === 'string') return textIn(value, name, holder)
  if (Array.isArray(value)) return value.flatMap((item) => textsIn(item, name, holder))
  if (typeof value !== 'object' || value === null) return []
  const object = value as Json
  if (object.thought === true || object.type === 'redacted_thinking') return []
  return Object.keys(object).flatMap((key) => {
    if (key === 'name' && object.source !== undefined) return textsIn(object[key], key, object)
    if (otherFields.has(key)) return []
    if (key === 'bytes')
      return textFormats.has(holder.format) ? [decoded(String(object.bytes))] : []
    return textsIn(object[key], key, object)
  })
}

function textIn(value: string, name: string, holder: Json): string[] {
  if (name === 'file_data' || name === 'image_url') {
    const [, type = '', data = ''] = /^data:([^;,]*);base64,(.*)$/s.exec(value) ?? []
    return textTypes.test(type) ? [decoded(data)] : []
  }
  if (name !== 'data') return [value]
  if (holder.type === 'text') return [value]
  return textTypes.test(String(holder.media_type ?? holder.mimeType)) ? [decoded(value)] : []
}
