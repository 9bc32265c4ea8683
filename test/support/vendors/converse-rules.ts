/** What Converse refuses of a body: unknown members, roles that do not alternate, stray tools. */

type Fields = Record<string, unknown>

const topLevel = [
  'messages',
  'system',
  'inferenceConfig',
  'toolConfig',
  'guardrailConfig',
  'additionalModelRequestFields',
  'additionalModelResponseFieldPaths',
  'promptVariables',
  'requestMetadata',
  'performanceConfig',
  'serviceTier',
  'outputConfig',
]
const blockKinds = [
  'text',
  'image',
  'document',
  'video',
  'audio',
  'searchResult',
  'toolUse',
  'toolResult',
  'guardContent',
  'cachePoint',
  'reasoningContent',
]
const mostPoints = 4

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])

/** The only member of a union. */
function memberOf(value: Fields, known: readonly string[], where: string): string {
  const names = Object.keys(value)
  const [only = ''] = names
  if (names.length !== 1 || !known.includes(only)) {
    throw new Error(`${where}: exactly one of ${known.join(', ')}, not ${names.join(', ')}`)
  }
  return only
}

class Rules {
  #points = 0
  #hasToolBlocks = false

  /** Ids of the calls of the message before. */
  #calls: unknown[] = []
  readonly #ids = new Set<unknown>()

  check(body: Fields): void {
    const unknown = Object.keys(body).find((name) => !topLevel.includes(name))
    if (unknown !== undefined) throw new Error(`unknown member ${unknown}`)
    for (const block of listOf(body.system)) {
      if (memberOf(block, ['text', 'cachePoint', 'guardContent'], 'system') === 'cachePoint') {
        this.#point(block)
      } else if (block.text === '') throw new Error('system: text is blank')
    }
    this.#messages(listOf(body.messages))
    this.#tools(body.toolConfig as Fields | undefined)
    this.#inference((body.inferenceConfig ?? {}) as Fields)
    this.#guardrail(body.guardrailConfig as Fields | undefined)
    this.#checkThinking(body)
    if (this.#points > mostPoints) throw new Error('too many cache points')
  }

  #point({ cachePoint }: Fields): void {
    if ((cachePoint as Fields).type !== 'default') throw new Error('cachePoint.type')
    this.#points++
  }

  #messages(messages: Fields[]): void {
    if (messages.length === 0) throw new Error('messages: at least one')
    let before: unknown = 'assistant'
    for (const [at, { role, content }] of messages.entries()) {
      const where = `messages[${at}]`
      if (role !== 'user' && role !== 'assistant') throw new Error(`${where}.role ${String(role)}`)
      if (role === before)
        throw new Error(`${where}: roles must alternate between user and assistant`)
      before = role
      if (listOf(content).length === 0) throw new Error(`${where}.content is empty`)
      this.#pairs(listOf(content), where)
      const members = listOf(content).flatMap(Object.keys)
      if (members.includes('document') && !members.includes('text')) {
        throw new Error(`${where}: a document needs a text block beside it`)
      }
      this.#results(members, where)
      for (const block of listOf(content)) this.#block(block, where)
    }
    if (before !== 'user') throw new Error('the conversation must end with a user message')
  }

  /** Results come first, and no document is beside them. */
  #results(members: readonly string[], where: string): void {
    const last = members.lastIndexOf('toolResult')
    if (last < 0) return
    const before = members
      .slice(0, last)
      .find((name) => name !== 'toolResult' && name !== 'cachePoint')
    if (before !== undefined) {
      throw new Error(
        `${where}: tool_use ids were found without tool_result blocks immediately after`,
      )
    }
    if (members.includes('document'))
      throw new Error(`${where}: a document beside toolResult blocks`)
  }

  /** The calls of a message are answered by the next one, all of them and no others. */
  #pairs(content: Fields[], where: string): void {
    const members = (name: string) =>
      content.flatMap((block) => (block[name] === undefined ? [] : [block[name] as Fields]))
    const answered = members('toolResult').map(({ toolUseId }) => toolUseId)
    if (
      answered.length !== this.#calls.length ||
      !this.#calls.every((id) => answered.includes(id))
    ) {
      throw new Error(`${where}: the number of toolResult blocks is not that of the toolUse blocks`)
    }
    this.#calls = members('toolUse').map(({ toolUseId }) => toolUseId)
    for (const id of this.#calls) {
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(id))) throw new Error(`${where}: toolUseId ${id}`)
      if (this.#ids.has(id)) throw new Error(`${where}: toolUseId ${id} comes twice`)
      this.#ids.add(id)
    }
    this.#thinking(members('reasoningContent'), where)
  }

  #thinking(blocks: Fields[], where: string): void {
    for (const block of blocks) {
      if (memberOf(block, ['reasoningText', 'redactedContent'], where) === 'redactedContent')
        continue
      const { signature } = block.reasoningText as Fields
      if (signature !== 'c2ln') throw new Error(`${where}: invalid signature of reasoning`)
    }
  }

  #block(block: Fields, where: string): void {
    const kind = memberOf(block, blockKinds, where)
    if (kind === 'cachePoint') this.#point(block)
    if (kind === 'text' && String(block.text).trim() === '')
      throw new Error(`${where}: text is blank`)
    if (kind === 'toolUse' || kind === 'toolResult') this.#hasToolBlocks = true
    if (kind === 'toolUse') {
      const { input, name } = block.toolUse as Fields
      if (typeof input !== 'object' || input === null) throw new Error(`${where}.toolUse.input`)
      this.#name(name)
    }
    if (kind === 'toolResult') {
      for (const part of listOf((block.toolResult as Fields).content)) {
        memberOf(
          part,
          ['text', 'json', 'image', 'document', 'video', 'searchResult'],
          `${where}.toolResult`,
        )
      }
    }
  }

  #name(name: unknown): void {
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(name)))
      throw new Error(`name of a tool: ${String(name)}`)
  }

  #tools(config: Fields | undefined): void {
    if (config === undefined) {
      if (this.#hasToolBlocks) throw new Error('toolConfig must be defined when using tool blocks')
      return
    }
    const unknown = Object.keys(config).find((name) => name !== 'tools' && name !== 'toolChoice')
    if (unknown !== undefined) throw new Error(`toolConfig.${unknown}`)
    if (listOf(config.tools).length === 0) throw new Error('toolConfig.tools: at least one')
    for (const tool of listOf(config.tools)) {
      if (memberOf(tool, ['toolSpec', 'cachePoint', 'systemTool'], 'tools') === 'cachePoint') {
        this.#point(tool)
        continue
      }
      const { name, description, inputSchema } = tool.toolSpec as Fields & { name: string }
      this.#name(name)
      if (description === '') throw new Error(`description of ${name}: at least one character`)
      const { type } = ((inputSchema as Fields | undefined)?.json ?? {}) as Fields
      if (type !== 'object') throw new Error(`inputSchema of ${name}: type must be object`)
    }
    if (config.toolChoice !== undefined) {
      memberOf(config.toolChoice as Fields, ['auto', 'any', 'tool'], 'toolChoice')
    }
  }

  /** As models of vendorC's family refuse it. */
  #checkThinking({ additionalModelRequestFields: more, toolConfig, messages }: Fields): void {
    const { thinking } = (more ?? {}) as Fields
    if (thinking === undefined) return
    const { any, tool } = ((toolConfig as Fields | undefined)?.toolChoice ?? {}) as Fields
    if (any !== undefined || tool !== undefined) {
      throw new Error('Thinking may not be enabled when tool_choice forces tool use.')
    }
    if ((thinking as Fields).type !== 'enabled') return
    let first: Fields | undefined
    for (const { role, content } of listOf(messages).toReversed()) {
      if (role === 'assistant') [first] = listOf(content)
      else if (!listOf(content).some(({ toolResult }) => toolResult !== undefined)) break
    }
    if (first !== undefined && first.reasoningContent === undefined) {
      throw new Error('Expected `thinking` or `redacted_thinking`, but found something else')
    }
  }

  #inference(config: Fields): void {
    const known = ['maxTokens', 'temperature', 'topP', 'stopSequences']
    const unknown = Object.keys(config).find((name) => !known.includes(name))
    if (unknown !== undefined) throw new Error(`inferenceConfig.${unknown}`)
    const { maxTokens } = config
    if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && Number(maxTokens) > 0)) {
      throw new Error('inferenceConfig.maxTokens')
    }
  }

  #guardrail(config: Fields | undefined): void {
    if (config === undefined) return
    const known = ['guardrailIdentifier', 'guardrailVersion', 'trace', 'streamProcessingMode']
    const unknown = Object.keys(config).find((name) => !known.includes(name))
    if (unknown !== undefined) throw new Error(`guardrailConfig.${unknown}`)
  }
}

/** The error in the body; undefined if it is valid. */
export function checkConverse(body: Fields): string | undefined {
  try {
    new Rules().check(body)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
