/** Converts the instructions and input items of a request in the responses format to the common form. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type {
  AudioBlock,
  Block,
  Chat,
  DocumentBlock,
  ImageBlock,
  TextBlock,
  Turn,
} from '../../chat.ts'
import { readArguments } from '../../common/arguments.ts'
import { audioBlock, sourceOfFile, sourceOfUrl, textBlock } from '../../common/media.ts'
import { field, objectAt, stringAt } from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import type { RequestTools } from './read-tools.ts'
import { readReasoning } from './reasoning.ts'

type Part = TextBlock | ImageBlock | DocumentBlock | AudioBlock

function imageBlock(part: unknown, path: string): ImageBlock {
  const url = stringAt(part, 'image_url')
  if (url === undefined) throw unsupportedPart(path, 'images by file_id')
  return { type: 'image', source: sourceOfUrl(url), path }
}

function fileBlock(part: unknown, path: string): DocumentBlock {
  const data = stringAt(part, 'file_data')
  const url = stringAt(part, 'file_url')
  const name = stringAt(part, 'filename')
  if (data === undefined && url === undefined) throw unsupportedPart(path, 'files by file_id')
  const source = data === undefined ? sourceOfUrl(url ?? '') : sourceOfFile(data, name)
  return { type: 'document', source, path, name }
}

function readPart(part: unknown, path: string): Part[] {
  const type = stringAt(part, 'type')
  switch (type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return textBlock(stringAt(part, 'text'))
    case 'refusal':
      return textBlock(stringAt(part, 'refusal'))
    case 'input_image':
      return [imageBlock(part, path)]
    case 'input_file':
      return [fileBlock(part, path)]
    case 'input_audio':
      return [audioBlock(part, path)]
    default:
      throw unsupportedPart(path, `parts of type ${String(type)}`)
  }
}

function readContent(content: unknown, path: string): Part[] {
  if (typeof content === 'string') return textBlock(content)
  if (!Array.isArray(content)) return []
  return content.flatMap((part: unknown, at) => readPart(part, `${path}[${at}]`))
}

function systemTexts(content: unknown, path: string): TextBlock[] {
  return readContent(content, path).map((block) => {
    if (block.type === 'text') return block
    throw unsupportedPart(block.path, `parts other than text in instructions`)
  })
}

function callBlock(item: unknown, path: string, tools: RequestTools): Block {
  const name = stringAt(item, 'name')
  const id = stringAt(item, 'call_id') ?? ''
  if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
  // Only searches for tools have objects.
  if (objectAt(item, 'arguments')) throw new LlmError(400, `${path}.arguments must be text`)
  const input =
    stringAt(item, 'type') === 'custom_tool_call'
      ? { input: stringAt(item, 'input') ?? '' }
      : readArguments(stringAt(item, 'arguments'))
  const unique = tools.nameOf(stringAt(item, 'namespace'), name)
  return { type: 'tool-call', id, name: unique, input }
}

function resultBlock(item: unknown, path: string): Block {
  const content = readContent(field(item, 'output'), `${path}.output`)
  return { type: 'tool-result', id: stringAt(item, 'call_id') ?? '', content }
}

class Input {
  readonly #tools: RequestTools
  readonly system: TextBlock[] = []
  readonly turns: { role: Turn['role']; blocks: Block[] }[] = []

  constructor(tools: RequestTools) {
    this.#tools = tools
  }

  /** Appends blocks. Adjacent assistant items share one turn, and so do adjacent tool results. */
  append(role: Turn['role'], blocks: readonly Block[]): void {
    const last = this.turns.at(-1)
    const isOneTurn = role === 'assistant' || blocks.every(({ type }) => type === 'tool-result')
    if (last?.role === role && isOneTurn) appendAll(last.blocks, blocks)
    else if (blocks.length > 0) this.turns.push({ role, blocks: [...blocks] })
  }

  read(item: unknown, path: string): void {
    const type = stringAt(item, 'type') ?? 'message'
    switch (type) {
      case 'message':
        this.#message(item, `${path}.content`)
        break
      case 'reasoning':
        this.append('assistant', readReasoning(item))
        break
      case 'function_call':
      case 'custom_tool_call':
        this.append('assistant', [callBlock(item, path, this.#tools)])
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.append('user', [resultBlock(item, path)])
        break
      case 'web_search_call':
        // A search call is dropped, because the message that follows has its results.
        break
      case 'additional_tools':
      case 'tool_search_call':
      case 'tool_search_output':
        // Only their tools matter, which `RequestTools` reads.
        break
      default:
        this.#other(item, type, path)
    }
  }

  /** Reads the texts of other items, such as messages of agents to each other. */
  #other(item: unknown, type: string, path: string): void {
    const content = field(item, 'content')
    if (typeof content !== 'string' && !Array.isArray(content)) {
      throw unsupportedPart(path, `items of type ${type}`)
    }
    this.#message(item, `${path}.content`)
  }

  /** A message of the system belongs to its place if others precede it. */
  #system(blocks: readonly TextBlock[]): void {
    if (this.turns.length === 0) appendAll(this.system, blocks)
    else if (blocks.length > 0) this.turns.push({ role: 'system', blocks: [...blocks] })
  }

  #message(item: unknown, path: string): void {
    const role = stringAt(item, 'role')
    const content = field(item, 'content')
    if (role === 'system' || role === 'developer') this.#system(systemTexts(content, path))
    else this.append(role === 'assistant' ? role : 'user', readContent(content, path))
  }
}

/** @throws LlmError 400 for items that only the responses format has. */
export function readInput(body: unknown, tools: RequestTools): Pick<Chat, 'system' | 'turns'> {
  const read = new Input(tools)
  const instructions = field(body, 'instructions')
  appendAll(read.system, systemTexts(instructions, 'instructions'))
  const input = field(body, 'input')
  if (typeof input === 'string') read.append('user', readContent(input, 'input'))
  else if (Array.isArray(input)) {
    for (const [at, item] of input.entries()) read.read(item, `input[${at}]`)
  } else throw new LlmError(400, 'input must be text or an array')
  return { system: read.system, turns: read.turns }
}
