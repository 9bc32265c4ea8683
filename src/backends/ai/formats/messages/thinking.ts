/**
 * Thinking of models of vendorC's family, wherever they are served. They refuse it in two cases: if
 * the request forces a call of a tool, and if the assistant's turn that the request continues does
 * not begin with the thinking that it was given, signed.
 */
import { type Block, type Chat, type Reasoning, type Turn, thinkingBudget } from '../../chat.ts'
import type { JsonObject } from '../../json.ts'

/** The least budget that the format allows. */
const leastBudget = 1024

export interface Thinking {
  /** The `thinking` field; undefined if the model is not to think. */
  readonly field: JsonObject | undefined
  /** The turns as they may stand beside that field. */
  readonly turns: readonly Turn[]
}

/** Asks for thinking as the client does, unless the provider would refuse the request for it. */
export function settleThinking(chat: Chat, maxTokens: number): Thinking {
  const { reasoning, turns } = chat
  if (reasoning === undefined) return { field: undefined, turns }
  const field = isRefused(chat) ? undefined : fieldOf(reasoning, maxTokens)
  // Without thinking in the request, thinking in its last turn is refused.
  return { field, turns: field === undefined ? turns.map(withoutThinking) : turns }
}

function fieldOf(reasoning: Reasoning, maxTokens: number): JsonObject | undefined {
  if (reasoning.type === 'adaptive') return { type: 'adaptive' }
  const wanted = thinkingBudget(reasoning)
  if (wanted === undefined) return undefined
  const budget = Math.min(wanted, maxTokens - 1)
  return budget < leastBudget ? undefined : { type: 'enabled', budget_tokens: budget }
}

function isRefused({ reasoning, toolChoice, turns }: Chat): boolean {
  if (toolChoice?.type === 'required' || toolChoice?.type === 'tool') return true
  // A model that decides for itself may have decided not to think.
  if (reasoning?.type === 'adaptive') return false
  const first = continuedTurn(turns, hasResults)
  return first !== undefined && !isSigned(first.blocks[0])
}

const hasResults = ({ blocks }: Turn): boolean => blocks.some(({ type }) => type === 'tool-result')

/**
 * The beginning of the assistant's turn that a request continues: results of tools do not end it.
 * Undefined if the request begins a new one.
 */
export function continuedTurn<OneTurn extends { readonly role: unknown }>(
  turns: readonly OneTurn[],
  isResult: (turn: OneTurn) => boolean,
): OneTurn | undefined {
  let first: OneTurn | undefined
  let at = turns.length - 1
  while (at >= 0) {
    const end = at
    let hasResult = false
    for (; at >= 0; at--) {
      const turn = turns[at]
      if (turn?.role !== 'user') break
      hasResult ||= isResult(turn)
    }
    if (at < end && !hasResult) return first
    for (; at >= 0 && turns[at]?.role !== 'user'; at--) first = turns[at]
  }
  return first
}

function isSigned(block: Block | undefined): boolean {
  if (block?.type === 'thinking') return Boolean(block.signature)
  return block?.type === 'redacted-thinking'
}

function withoutThinking({ role, blocks }: Turn): Turn {
  return {
    role,
    blocks: blocks.filter(({ type }) => type !== 'thinking' && type !== 'redacted-thinking'),
  }
}
