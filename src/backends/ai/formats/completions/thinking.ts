/**
 * Thinking in chat completions. The format has no place for it, so three extensions that several
 * gateways share carry it: `reasoning_content` is for people; `thinking_blocks` is what clients send
 * back, whole and signed, so that a model can go on where it was; `reasoning_signature` goes with a
 * single `reasoning_content`.
 */
import type { Choice, RedactedThinkingBlock, ThinkingBlock } from '../../chat.ts'
import { type JsonObject, listAt, stringAt } from '../../json.ts'

type AnyThinking = ThinkingBlock | RedactedThinkingBlock

/**
 * The blocks that a provider takes back; undefined if the answer has no thinking. An empty list means
 * that the thinking has no signature to send back, and marks the message as a translated one.
 */
export function writeThinkingBlocks(blocks: Choice['blocks']): JsonObject[] | undefined {
  const isThought = ({ type }: Choice['blocks'][number]) =>
    type === 'thinking' || type === 'redacted-thinking'
  if (!blocks.some(isThought)) return undefined
  return blocks.flatMap((block): JsonObject[] => {
    if (block.type === 'redacted-thinking') return [{ type: 'redacted_thinking', data: block.data }]
    if (block.type !== 'thinking' || !block.signature) return []
    return [{ type: 'thinking', thinking: block.text, signature: block.signature }]
  })
}

/** The thinking of a message of the assistant, in front of everything else that it said. */
export function readThinking(message: unknown): AnyThinking[] {
  const blocks = listAt(message, 'thinking_blocks').flatMap(readBlock)
  const text = stringAt(message, 'reasoning_content')
  if (blocks.length > 0 || text === undefined) return blocks
  const signature = stringAt(message, 'reasoning_signature')
  return [{ type: 'thinking', text, ...(signature !== undefined && { signature }) }]
}

function readBlock(block: unknown): AnyThinking[] {
  const data = stringAt(block, 'data')
  if (stringAt(block, 'type') === 'redacted_thinking') {
    return data === undefined ? [] : [{ type: 'redacted-thinking', data }]
  }
  const signature = stringAt(block, 'signature')
  if (signature === undefined) return []
  return [{ type: 'thinking', text: stringAt(block, 'thinking') ?? '', signature }]
}

/** Characters of thinking that are kept; a longer one cannot be sent back. */
const mostKept = 1 << 20

/**
 * Keeps the thinking of a streamed answer until its end: accumulators of SDKs take the last value of
 * a field that they do not know, so that pieces of it would be lost.
 */
export class ThinkingKeeper {
  readonly #blocks = new Map<number, { text: string; signature: string; data?: string }>()
  #size = 0

  add(index: number, text: string, signature = ''): void {
    this.#size += text.length + signature.length
    if (this.#size > mostKept) {
      this.#blocks.clear()
      return
    }
    const block = this.#blocks.get(index) ?? { text: '', signature: '' }
    block.text += text
    block.signature += signature
    this.#blocks.set(index, block)
  }

  addRedacted(index: number, data: string): void {
    this.add(index, '', data)
    const block = this.#blocks.get(index)
    if (block !== undefined) block.data = block.signature
  }

  /** All of it in the order in which it came. */
  blocks(): AnyThinking[] {
    return [...this.#blocks.values()].map(({ text, signature, data }) =>
      data === undefined
        ? { type: 'thinking', text, signature }
        : { type: 'redacted-thinking', data },
    )
  }
}
