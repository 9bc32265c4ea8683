/** What the messages format refuses of a conversation with tools and thinking. */

type Fields = Record<string, unknown>

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])

const idPattern = /^[a-zA-Z0-9_-]{1,64}$/
const namePattern = /^[a-zA-Z0-9_-]{1,128}$/
const thinkingTypes = ['thinking', 'redacted_thinking']
/** Signatures that the simulator takes for its own. */
const ownSignatures = ['c2ln', 'c2lnLTI=']

const sources: Readonly<Record<string, (source: Fields) => boolean>> = {
  image: ({ type, media_type }) =>
    type === 'url' || /^image\/(jpeg|png|gif|webp)$/.test(String(media_type)),
  document: ({ type, media_type, data }) =>
    type === 'url' ||
    type === 'content' ||
    (type === 'base64' && media_type === 'application/pdf') ||
    (type === 'text' && media_type === 'text/plain' && typeof data === 'string'),
}

function checkBlock(block: Fields, role: unknown, where: string): string | undefined {
  const type = String(block.type)
  switch (type) {
    case 'text':
      return block.text === '' ? `${where}.text: must be non-empty` : undefined
    case 'image':
    case 'document':
      return sources[type]?.(block.source as Fields) === true ? undefined : `${where}.source`
    case 'search_result':
    case 'server_tool_use':
    case 'web_search_tool_result':
    case 'code_execution_tool_result':
    // Content without a type is no part of the vendor's interface.
    case 'null':
      return undefined
    case 'thinking':
      if (role !== 'assistant') return `${where}: thinking of a user`
      return ownSignatures.includes(String(block.signature))
        ? undefined
        : `${where}: Invalid \`signature\` in \`thinking\` block`
    case 'redacted_thinking':
      return typeof block.data === 'string' ? undefined : `${where}.data`
    case 'tool_use':
      return checkCall(block, where)
    case 'tool_result':
      if (!idPattern.test(String(block.tool_use_id))) return `${where}.tool_use_id: pattern`
      return listOf(block.content).reduce<string | undefined>(
        (problem, part, at) => problem ?? checkBlock(part, role, `${where}.content.${at}`),
        undefined,
      )
    default:
      return `${where}.type: ${type}`
  }
}

function checkCall({ id, name, input }: Fields, where: string): string | undefined {
  if (!idPattern.test(String(id))) {
    return `${where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`
  }
  if (!namePattern.test(String(name))) return `${where}.tool_use.name: pattern`
  const isObject = typeof input === 'object' && input !== null && !Array.isArray(input)
  return isObject ? undefined : `${where}.tool_use.input: Input should be a valid dictionary`
}

const blocksOf = ({ content }: Fields): Fields[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)

/** Messages of one role in a row count as one. */
function turnsOf(messages: readonly Fields[]): { role: unknown; blocks: Fields[] }[] {
  const turns: { role: unknown; blocks: Fields[] }[] = []
  for (const message of messages) {
    const last = turns.at(-1)
    if (last?.role === message.role) last?.blocks.push(...blocksOf(message))
    else turns.push({ role: message.role, blocks: [...blocksOf(message)] })
  }
  return turns
}

/** Messages of the system stand between one of the user and one of the assistant, or at the end. */
function checkPlaces(messages: readonly Fields[]): string | undefined {
  for (const [at, { role }] of messages.entries()) {
    if (role !== 'system') continue
    const before = messages[at - 1]?.role
    const after = messages[at + 1]?.role
    if (before !== 'user' || (after !== undefined && after !== 'assistant')) {
      return `messages.${at}: a system message must follow a user message and precede an assistant message`
    }
  }
  return undefined
}

/** Every call is answered by the next message, and no id comes twice. */
function checkPairs(turns: readonly { blocks: Fields[] }[]): string | undefined {
  const known = new Set<unknown>()
  for (const [at, { blocks }] of turns.entries()) {
    const calls = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => id)
    const after = turns[at + 1]?.blocks ?? []
    const answered = after.filter(({ type }) => type === 'tool_result')
    for (const id of calls) {
      if (known.has(id)) return 'messages: `tool_use` ids must be unique'
      known.add(id)
      if (!answered.some(({ tool_use_id }) => tool_use_id === id)) {
        return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks`
      }
    }
    const stray = answered.find(({ tool_use_id }) => !calls.includes(tool_use_id))
    if (stray !== undefined) return `messages.${at + 1}: unexpected \`tool_use_id\``
  }
  return undefined
}

function checkThinking(
  { thinking, tool_choice: choice, max_tokens: most, temperature, top_k }: Fields,
  turns: readonly { role: unknown; blocks: Fields[] }[],
): string | undefined {
  const { type = 'disabled', budget_tokens: budget } = (thinking ?? {}) as Fields
  let at = turns.length - 1
  let first: Fields[] | undefined
  for (; at >= 0; at--) {
    const turn = turns[at]
    if (turn?.role === 'assistant') first = turn.blocks
    else if (turn?.blocks.some((block) => block.type === 'tool_result') !== true) break
  }
  const isFirstThought = thinkingTypes.includes(String(first?.[0]?.type))
  if (type === 'disabled') {
    return thinking !== undefined && isFirstThought
      ? 'When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`'
      : undefined
  }
  const forced = ['any', 'tool'].includes(String((choice as Fields | undefined)?.type))
  if (forced) return 'Thinking may not be enabled when tool_choice forces tool use.'
  if (type !== 'enabled') return undefined
  if (Number(budget) < 1024 || Number(budget) >= Number(most)) return 'thinking.budget_tokens'
  if (temperature !== undefined && temperature !== 1) return 'temperature may only be 1'
  if (top_k !== undefined) return 'top_k must be unset'
  if (first === undefined || isFirstThought) return undefined
  return `messages: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first[0]?.type}\``
}

function checkTools(tools: unknown): string | undefined {
  for (const [at, { name, type, input_schema: schema }] of listOf(tools).entries()) {
    if (type === 'web_search_20250305') {
      if (name !== 'web_search') return `tools.${at}.name`
      continue
    }
    if (type !== undefined && type !== 'custom') return `tools.${at}.type: ${String(type)}`
    if (!namePattern.test(String(name))) return `tools.${at}.name: pattern`
    if ((schema as Fields | undefined)?.type !== 'object') {
      return `tools.${at}.input_schema.type: Field required`
    }
  }
  return undefined
}

/** What is wrong with the conversation; undefined if nothing is. */
export function checkConversation(body: Fields): string | undefined {
  const misplaced = checkPlaces(listOf(body.messages))
  if (misplaced !== undefined) return misplaced
  const turns = turnsOf(listOf(body.messages).filter(({ role }) => role !== 'system'))
  for (const [at, { role, blocks }] of turns.entries()) {
    for (const [position, block] of blocks.entries()) {
      const problem = checkBlock(block, role, `messages.${at}.content.${position}`)
      if (problem !== undefined) return problem
    }
  }
  const hasTools = turns.some(({ blocks }) => blocks.some(({ type }) => type === 'tool_use'))
  if (hasTools && listOf(body.tools).length === 0) {
    return 'Requests which include `tool_use` or `tool_result` blocks must define tools'
  }
  return checkPairs(turns) ?? checkThinking(body, turns) ?? checkTools(body.tools)
}
