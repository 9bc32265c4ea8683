/** Converts tool calls in responses: restores the client's tool names and namespaces, and the plain text of custom tools. */
import type {
  Choice,
  ModelResponse,
  ResponseEvent,
  ResponseEventReader,
  StreamEvent,
  Tool,
  ToolCallBlock,
} from '../chat.ts'
import { parseJson, stringAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { ToolLabels } from './tool-labels.ts'

export class ClientTools {
  readonly #labels: ToolLabels
  /** Tools that are custom or in a namespace, by their unique names. */
  readonly #special: ReadonlyMap<string, Tool>

  constructor(tools: readonly Tool[], labels: ToolLabels) {
    this.#labels = labels
    const special = tools.filter(({ custom, member }) => custom || member !== undefined)
    this.#special = new Map(special.map((tool) => [tool.name, tool]))
  }

  /** Returns what the client calls a tool, by the name that the provider has for it. */
  called(providerName: string): Pick<ToolCallBlock, 'name' | 'namespace' | 'custom'> {
    const name = this.#labels.clientName(providerName)
    const tool = this.#special.get(name)
    return tool === undefined
      ? { name }
      : { name, ...tool.member, ...(tool.custom && { custom: true }) }
  }

  clientResponse(response: ModelResponse): ModelResponse {
    const { others } = response
    const blocks = this.#blocks(response)
    if (others === undefined) return { ...response, blocks }
    const renamed = others.map((choice) => ({ ...choice, blocks: this.#blocks(choice) }))
    return { ...response, blocks, others: renamed }
  }

  #blocks({ blocks }: Choice): Choice['blocks'] {
    return blocks.map((block) => {
      if (block.type !== 'tool-call') return block
      const called = this.called(block.name)
      const input = called.custom === true ? textOfInput(block.input) : block.input
      return { ...block, ...called, input }
    })
  }
}

/** Returns the text for a custom tool; models may omit the object around it. */
function textOfInput(input: unknown): string {
  return stringAt(input, 'input') ?? (typeof input === 'string' ? input : JSON.stringify(input))
}

/** Maximum total length of the inputs of custom tools in a response, in characters. */
const maxTextLength = 16 << 20

/** Converts tool calls in streamed responses. The input of a custom tool is held until it is complete. */
export class ClientToolReader implements ResponseEventReader {
  readonly #reader: ResponseEventReader
  readonly #tools: ClientTools
  readonly #heldInputs = new Map<number, string>()
  #heldLength = 0

  constructor(reader: ResponseEventReader, tools: ClientTools) {
    this.#reader = reader
    this.#tools = tools
  }

  read(event: StreamEvent): readonly ResponseEvent[] {
    return this.#clientEvents(this.#reader.read(event))
  }

  finish(): readonly ResponseEvent[] {
    return this.#clientEvents(this.#reader.finish())
  }

  #clientEvents(events: readonly ResponseEvent[]): readonly ResponseEvent[] {
    const isTouched = this.#heldInputs.size > 0 || events.some(({ type }) => type === 'tool-start')
    return isTouched ? events.flatMap((event) => this.#clientEvent(event)) : events
  }

  #clientEvent(event: ResponseEvent): readonly ResponseEvent[] {
    switch (event.type) {
      case 'tool-start': {
        const called = this.#tools.called(event.name)
        if (called.custom === true) this.#heldInputs.set(event.index, '')
        return [{ ...event, ...called }]
      }
      case 'tool-input': {
        const held = this.#heldInputs.get(event.index)
        if (held === undefined) return [event]
        this.#heldLength += event.json.length
        if (this.#heldLength > maxTextLength)
          throw new LlmError(502, 'the input of a tool is too long')
        this.#heldInputs.set(event.index, held + event.json)
        return []
      }
      case 'block-stop':
        return [...this.#release(event.index), event]
      case 'stop':
        return [...[...this.#heldInputs.keys()].flatMap((index) => this.#release(index)), event]
      default:
        return [event]
    }
  }

  #release(index: number): readonly ResponseEvent[] {
    const held = this.#heldInputs.get(index)
    if (held === undefined) return []
    this.#heldInputs.delete(index)
    return [{ type: 'tool-input', index, json: textOfInput(parseJson(held) ?? held) }]
  }
}
