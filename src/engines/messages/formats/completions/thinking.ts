/**
 * Thinking in chat completions. The format has no field for it, so it uses three extensions that
 * several gateways share. `reasoning_content` is shown to users. Clients send `thinking_blocks` back,
 * whole and signed, so that the model can continue. `reasoning_signature` is the signature of a
 * single `reasoning_content`.
 */
import type { Choice, RedactedThinkingBlock, ThinkingBlock } from '../../chat.ts'
import { type JsonObject, listAt, stringAt } from '../../json/json.ts'

type AnyThinking = ThinkingBlock | RedactedThinkingBlock

/**
 * Returns the blocks that a provider accepts back; undefined if the response has no thinking. The list is
 * empty if the thinking is not signed; an empty list marks the message as translated.
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

/** Reads the thinking of an assistant message; callers put it before the other content. */
export function readThinking(message: unknown): AnyThinking[] {
  const blocks = listAt(message, 'thinking_blocks').flatMap(readBlock)
  const text = stringAt(message, 'reasoning_content') ?? stringAt(message, 'reasoning')
  if (blocks.length > 0 || text === undefined) return blocks
  return [{ type: 'thinking', text, signature: stringAt(message, 'reasoning_signature') }]
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

/** Maximum number of characters of thinking to keep; longer thinking is dropped and cannot be sent back. */
const maxKept = 1 << 20

/**
 * Keeps the thinking of a streamed response until its end, because SDKs keep only the last value of a
 * field that they do not know.
 */
export class ThinkingKeeper {
  readonly #blocks = new Map<number, { text: string; signature: string; data?: string }>()
  #size = 0

  add(index: number, text: string, signature = ''): void {
    this.#size += text.length + signature.length
    if (this.#size > maxKept) {
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

  blocks(): AnyThinking[] {
    return [...this.#blocks.values()].map(({ text, signature, data }) =>
      data === undefined
        ? { type: 'thinking', text, signature }
        : { type: 'redacted-thinking', data },
    )
  }
}
