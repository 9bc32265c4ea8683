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
      for (const block of listOf(content)) this.#block(block, where)
    }
    if (before !== 'user') throw new Error('the conversation must end with a user message')
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
        memberOf(part, ['text', 'json', 'image', 'document', 'video'], `${where}.toolResult`)
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
      const { name, inputSchema } = tool.toolSpec as { name: string; inputSchema: Fields }
      this.#name(name)
      if (typeof inputSchema?.json !== 'object') throw new Error(`inputSchema of ${name}`)
    }
    if (config.toolChoice !== undefined) {
      memberOf(config.toolChoice as Fields, ['auto', 'any', 'tool'], 'toolChoice')
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

/** What is wrong with the body; undefined where nothing is. */
export function checkConverse(body: Fields): string | undefined {
  try {
    new Rules().check(body)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
