/**
 * Thinking of vendor C's models, whichever provider serves them. A model rejects thinking in two cases:
 * if the request forces a tool call, and if the request continues an assistant turn that does not begin
 * with signed thinking.
 */
import { type Block, type Chat, type Reasoning, type Turn, thinkingBudget } from '../../chat.ts'
import type { JsonObject } from '../../json/json.ts'

/** Minimum thinking budget that the format allows, in tokens. */
const minBudget = 1024

export interface Thinking {
  /** Value of the `thinking` field; undefined if the model must not think. */
  readonly field: JsonObject | undefined
  /** The turns to send; if `field` is undefined, thinking is removed from them. */
  readonly turns: readonly Turn[]
}

/** Requests the thinking that the client asks for, unless the provider would reject the request. */
export function settleThinking(chat: Chat, maxTokens: number): Thinking {
  const { reasoning, turns } = chat
  if (reasoning === undefined) return { field: undefined, turns }
  const field = isRefused(chat) ? undefined : fieldOf(reasoning, maxTokens)
  // A request without the `thinking` field must not contain thinking in its last turn.
  return { field, turns: field === undefined ? turns.map(withoutThinking) : turns }
}

function fieldOf(reasoning: Reasoning, maxTokens: number): JsonObject | undefined {
  if (reasoning.type === 'adaptive') return { type: 'adaptive' }
  const wanted = thinkingBudget(reasoning)
  if (wanted === undefined) return undefined
  const budget = Math.min(wanted, maxTokens - 1)
  return budget < minBudget ? undefined : { type: 'enabled', budget_tokens: budget }
}

function isRefused({ reasoning, toolChoice, turns }: Chat): boolean {
  if (toolChoice?.type === 'required' || toolChoice?.type === 'tool') return true
  // With adaptive thinking, the model may have decided not to think.
  if (reasoning?.type === 'adaptive') return false
  const first = continuedTurn(turns, hasResults)
  return first !== undefined && !isSigned(first.blocks[0])
}

const hasResults = ({ blocks }: Turn): boolean => blocks.some(({ type }) => type === 'tool-result')

/**
 * Returns the first message of the assistant turn that a request continues, or undefined if the request
 * begins a new turn. Tool results do not end a turn.
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
