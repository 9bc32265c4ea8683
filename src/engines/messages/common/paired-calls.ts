/** Gives calls of tools and their results the ids that clients have left out, which most providers need. */
import type { Block, Chat, ToolCallBlock, ToolResultBlock, Turn } from '../chat.ts'
import { LlmError } from '../llm-error.ts'

const isCall = (block: Block): block is ToolCallBlock => block.type === 'tool-call'
const isResult = (block: Block): block is ToolResultBlock => block.type === 'tool-result'
const lacksId = (block: Block): boolean => (isCall(block) || isResult(block)) && block.id === ''

/**
 * Returns the conversation in which every call and every result has an id; the same object if none lacks one. Results
 * without an id belong to the calls before them that no other result names, in their order.
 * @throws LlmError 400 if there is no such call
 */
export function pairCalls(chat: Chat): Chat {
  if (!chat.turns.some(({ blocks }) => blocks.some(lacksId))) return chat
  let open: string[] = []
  const turns = chat.turns.map((turn, at): Turn => {
    const { role, blocks } = turn
    if (role === 'assistant') {
      const named = blocks.map((block, index) =>
        isCall(block) && block.id === '' ? { ...block, id: `call_${at}_${index}` } : block,
      )
      open = named.filter(isCall).map(({ id }) => id)
      return { ...turn, blocks: named }
    }
    const answered = new Set(blocks.filter(isResult).map(({ id }) => id))
    open = open.filter((id) => !answered.has(id))
    return {
      ...turn,
      blocks: blocks.map((block) => {
        if (!isResult(block) || block.id !== '') return block
        const id = open.shift()
        if (id === undefined) throw new LlmError(400, 'a result of a tool names no call')
        return { ...block, id }
      }),
    }
  })
  return { ...chat, turns }
}
