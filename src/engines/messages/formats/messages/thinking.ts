/**
 * Thinking of vendor C's models, whichever provider serves them. A model rejects thinking in two cases:
 * if the request forces a tool call, and if the request continues an assistant turn that does not begin
 * with signed thinking.
 */
import { type Effort, efforts, type ModelFacts, type ThinkingFacts } from '../../catalog/facts.ts'
import type { Block, Chat, Reasoning, ThinkingBlock, ToolChoice, Turn } from '../../chat.ts'
import { budgetOf, effortOf, nearestEffort } from '../../common/effort.ts'
import { isSealed } from '../../common/thought-signature.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'

/** Minimum thinking budget that the format allows, in tokens. */
const minBudget = 1024

/** Thinking of models of which nothing is known. */
const usual: ThinkingFacts = { forms: ['budget', 'adaptive'], efforts, mode: 'off' }

export interface Thinking {
  /** Value of the `thinking` field; undefined to omit it. */
  readonly field: JsonObject | undefined
  /** Value of `output_config.effort`; undefined to omit it. */
  readonly effort: Effort | undefined
  /** Whether the request turns thinking on, so that the provider refuses sampling parameters. */
  readonly isOn: boolean
  /** The turns to send; if the model must not think, thinking is removed from them. */
  readonly turns: readonly Turn[]
}

/** Requests the thinking that the client asks for, unless the provider would reject the request. */
export function settleThinking(
  chat: Chat,
  { thinking = usual, refuses }: ModelFacts,
  maxTokens: number,
): Thinking {
  const { reasoning, turns } = chat
  const isForced = chat.toolChoice !== undefined && forcing.includes(chat.toolChoice.type)
  if (isForced && refuses?.includes('forced_tools')) {
    throw unsupportedPart('tool_choice', 'forced calls of tools of this model')
  }
  if (thinking === false) {
    return { field: undefined, effort: undefined, isOn: false, turns: turns.map(withoutThinking) }
  }
  const effort = reasoning && guideOf(reasoning, thinking)
  const isGuide = reasoning?.type === 'effort' && reasoning.isGuide
  const mustStop = isForced && thinking.mode === 'on'
  if ((reasoning === undefined || isGuide) && !mustStop) {
    return { field: undefined, effort, isOn: false, turns }
  }
  const field =
    isForced || reasoning === undefined ? undefined : fieldOf(chat, reasoning, thinking, maxTokens)
  if (field !== undefined) return { field, effort, isOn: true, turns }
  if (thinking.mode === 'always') return { field, effort, isOn: false, turns }
  // A request without thinking must not contain thinking in its last turn.
  const off = thinking.mode === 'on' ? { type: 'disabled' } : undefined
  return { field: off, effort, isOn: false, turns: turns.map(withoutThinking) }
}

/** Returns the effort that guides the model; undefined if the model takes none, or if the client has set none. */
function guideOf(
  reasoning: Reasoning,
  { forms, efforts: accepted }: ThinkingFacts,
): Effort | undefined {
  if (accepted === undefined || reasoning.type === 'off') return undefined
  if (reasoning.type === 'adaptive') {
    return reasoning.effort && nearestEffort(reasoning.effort, accepted)
  }
  // A budget says as much as an effort.
  const isBudget = reasoning.type === 'budget' || reasoning.isGuide !== true
  if (isBudget && formOf(reasoning, forms) === 'budget') return undefined
  const effort = effortOf(reasoning)
  return effort === 'none' ? undefined : nearestEffort(effort, accepted)
}

const formOf = (reasoning: Reasoning, forms: ThinkingFacts['forms']) =>
  forms.find((one) => one === reasoning.type) ?? forms[0]

function fieldOf(
  { showsThinking, turns }: Chat,
  reasoning: Reasoning,
  { forms, budget: limits }: ThinkingFacts,
  maxTokens: number,
): JsonObject | undefined {
  const wanted = budgetOf(reasoning)
  if (wanted === undefined) return undefined
  // With adaptive thinking, the model may have decided not to think before its calls.
  if (formOf(reasoning, forms) === 'adaptive') {
    const shown = showsThinking === true ? 'summarized' : 'omitted'
    const display = showsThinking === undefined ? undefined : shown
    return compact({ type: 'adaptive', display })
  }
  if (continuesUnsigned(turns)) return undefined
  const budget = Math.min(wanted, maxTokens - 1, limits?.max ?? wanted)
  return budget < minBudget ? undefined : { type: 'enabled', budget_tokens: budget }
}

/** Choices that force a call. */
const forcing: readonly ToolChoice['type'][] = ['required', 'tool', 'search']

/** Returns true if the turn that the request continues does not begin with signed thinking. */
function continuesUnsigned(turns: readonly Turn[]): boolean {
  const conversation = turns.filter(({ role }) => role !== 'system')
  const first = continuedTurn(conversation, hasResults)
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

/** Returns the signature of thinking that models of vendor C have signed. */
export const ownSignature = ({ signature }: ThinkingBlock): string | undefined =>
  signature && !isSealed(signature) ? signature : undefined

function isSigned(block: Block | undefined): boolean {
  if (block?.type === 'thinking') return ownSignature(block) !== undefined
  return block?.type === 'redacted-thinking'
}

function withoutThinking({ role, blocks }: Turn): Turn {
  return {
    role,
    blocks: blocks.filter(({ type }) => type !== 'thinking' && type !== 'redacted-thinking'),
  }
}
