/** Calls of tools in answers, with the names by which the client knows the tools. */
import type { Answer, AnswerEvent, AnswerReader, Choice, StreamEvent } from '../chat.ts'
import type { ToolLabels } from './tool-labels.ts'

export function withClientTools(answer: Answer, labels: ToolLabels): Answer {
  const { others } = answer
  const blocks = clientBlocks(answer, labels)
  if (others === undefined) return { ...answer, blocks }
  const renamed = others.map((choice) => ({ ...choice, blocks: clientBlocks(choice, labels) }))
  return { ...answer, blocks, others: renamed }
}

function clientBlocks({ blocks }: Choice, labels: ToolLabels): Choice['blocks'] {
  return blocks.map((block) =>
    block.type === 'tool-call' ? { ...block, name: labels.clientName(block.name) } : block,
  )
}

/** The same for streamed answers. */
export class ClientToolReader implements AnswerReader {
  readonly #reader: AnswerReader
  readonly #labels: ToolLabels

  constructor(reader: AnswerReader, labels: ToolLabels) {
    this.#reader = reader
    this.#labels = labels
  }

  read(event: StreamEvent): readonly AnswerEvent[] {
    return this.#clientEvents(this.#reader.read(event))
  }

  finish(): readonly AnswerEvent[] {
    return this.#clientEvents(this.#reader.finish())
  }

  #clientEvents(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
    if (!events.some(({ type }) => type === 'tool-start')) return events
    return events.map((event) =>
      event.type === 'tool-start' ? { ...event, name: this.#labels.clientName(event.name) } : event,
    )
  }
}
