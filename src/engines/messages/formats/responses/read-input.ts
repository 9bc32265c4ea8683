/** Converts the instructions and input items of a request in the responses format to the common form. */
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
import { field, stringAt } from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
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

function callBlock(item: unknown, path: string): Block {
  const name = stringAt(item, 'name')
  const id = stringAt(item, 'call_id') ?? ''
  if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
  const input =
    stringAt(item, 'type') === 'custom_tool_call'
      ? { input: stringAt(item, 'input') ?? '' }
      : readArguments(stringAt(item, 'arguments'))
  return { type: 'tool-call', id, name, input }
}

function resultBlock(item: unknown, path: string): Block {
  const content = readContent(field(item, 'output'), `${path}.output`)
  return { type: 'tool-result', id: stringAt(item, 'call_id') ?? '', content }
}

class Input {
  readonly system: TextBlock[] = []
  readonly turns: { role: Turn['role']; blocks: Block[] }[] = []

  /** Appends blocks. Adjacent assistant items share one turn, and so do adjacent tool results. */
  append(role: Turn['role'], blocks: readonly Block[]): void {
    const last = this.turns.at(-1)
    const isOneTurn = role === 'assistant' || blocks.every(({ type }) => type === 'tool-result')
    if (last?.role === role && isOneTurn) last.blocks.push(...blocks)
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
        this.append('assistant', [callBlock(item, path)])
        break
      case 'function_call_output':
      case 'custom_tool_call_output':
        this.append('user', [resultBlock(item, path)])
        break
      case 'web_search_call':
        // A search call is dropped, because the message that follows has its results.
        break
      default:
        throw unsupportedPart(path, `items of type ${type}`)
    }
  }

  #message(item: unknown, path: string): void {
    const role = stringAt(item, 'role')
    const content = field(item, 'content')
    if (role === 'system' || role === 'developer') this.system.push(...systemTexts(content, path))
    else this.append(role === 'assistant' ? role : 'user', readContent(content, path))
  }
}

/** @throws LlmError 400 for items that only the responses format has. */
export function readInput(body: unknown): Pick<Chat, 'system' | 'turns'> {
  const read = new Input()
  const instructions = field(body, 'instructions')
  read.system.push(...systemTexts(instructions, 'instructions'))
  const input = field(body, 'input')
  if (typeof input === 'string') read.append('user', readContent(input, 'input'))
  else if (Array.isArray(input)) {
    for (const [at, item] of input.entries()) read.read(item, `input[${at}]`)
  } else throw new LlmError(400, 'input must be text or an array')
  return { system: read.system, turns: read.turns }
}
