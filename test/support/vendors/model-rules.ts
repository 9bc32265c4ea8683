/**
 * What vendors refuse by model, as their documents and error messages say. Written apart from the catalog of the
 * gateway, which must lead to requests that pass here.
 */

type Fields = Record<string, unknown>

const has = (fields: Fields, name: string): boolean => fields[name] !== undefined

/** Version of a Claude model, such as 4.7; 0 for other models. */
function claudeVersion(model: string): number {
  const [, major, minor = '0'] = /claude-(?:[a-z]+-)?(\d)(?:[-.](\d{1,2})(?!\d))?/.exec(model) ?? []
  return major === undefined ? 0 : Number(`${major}.${minor}`)
}

const thinksAlways = /claude-(?:fable|mythos)|claude-(?:opus|sonnet)-5-5/
const refusesForcedTools = /claude-(?:fable|mythos)-5-1|claude-(?:opus|sonnet)-5-5/

interface ClaudeRequest {
  readonly thinking: Fields | undefined
  readonly effort: unknown
  readonly sampling: Fields
  readonly maxTokens: unknown
  readonly isForced: boolean
}

const efforts = ['low', 'medium', 'high', 'xhigh', 'max']

/** What Claude models refuse, whichever vendor serves them. */
function refusalOfClaude(model: string, request: ClaudeRequest): string | undefined {
  const version = claudeVersion(model)
  if (version === 0) return undefined
  const { thinking, effort, sampling, maxTokens, isForced } = request
  if (thinking?.type === 'enabled' && version >= 4.7) {
    return '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
  }
  if (thinking?.type === 'adaptive' && version < 4.6) {
    return 'adaptive thinking is not supported on this model'
  }
  if (thinking?.type === 'enabled' && version < 3.7)
    return 'thinking is not supported on this model'
  if (thinking?.type === 'disabled' && thinksAlways.test(model)) {
    return '"thinking.type.disabled" is not supported for this model'
  }
  if (isForced && refusesForcedTools.test(model)) {
    return 'tool_choice: forced tool use is not supported on this model'
  }
  const problem = refusalOfEffort(version, effort) ?? refusalOfSampling(version, sampling)
  if (problem !== undefined) return problem
  const most = version >= 4.6 ? 128_000 : /opus-4(?:-1)?(?!-\d)/.test(model) ? 32_000 : 64_000
  return Number(maxTokens ?? 1) > most ? `max_tokens: ${maxTokens} > ${most}` : undefined
}

function refusalOfEffort(version: number, effort: unknown): string | undefined {
  if (effort === undefined) return undefined
  if (version < 4.5) return 'This model does not support the effort parameter.'
  if (!efforts.includes(String(effort))) return `output_config.effort: ${String(effort)}`
  if (effort === 'xhigh' && version < 4.7)
    return "This model does not support effort level 'xhigh'."
  return effort === 'max' && version < 4.6
    ? "This model does not support effort level 'max'."
    : undefined
}

function refusalOfSampling(version: number, sampling: Fields): string | undefined {
  const set = ['temperature', 'top_p', 'top_k'].filter((name) => has(sampling, name))
  if (version >= 4.7 && set[0] !== undefined) return `\`${set[0]}\` is deprecated for this model.`
  if (version >= 4.1 && set.includes('temperature') && set.includes('top_p')) {
    return '`temperature` and `top_p` cannot both be specified for this model.'
  }
  const { temperature = 0 } = sampling
  return Number(temperature) > 1 ? 'temperature: range: 0..1' : undefined
}

export function refusalOfMessages(model: string, body: Fields): string | undefined {
  const { effort } = (body.output_config ?? {}) as Fields
  const { type } = (body.tool_choice ?? {}) as Fields
  return refusalOfClaude(model, {
    thinking: body.thinking as Fields | undefined,
    effort,
    sampling: body,
    maxTokens: body.max_tokens,
    isForced: type === 'any' || type === 'tool',
  })
}

export function refusalOfConverse(model: string, body: Fields): string | undefined {
  const more = (body.additionalModelRequestFields ?? {}) as Fields
  const { maxTokens, temperature, topP } = (body.inferenceConfig ?? {}) as Fields
  const { toolChoice } = (body.toolConfig ?? {}) as Fields
  const { effort } = (more.output_config ?? {}) as Fields
  const choice = Object.keys(toolChoice ?? {})[0] ?? ''
  if (/amazon\.nova/.test(model)) {
    const known = model.includes('nova-2')
      ? ['reasoningConfig', 'inferenceConfig']
      : ['inferenceConfig']
    const unknown = Object.keys(more).find((name) => !known.includes(name))
    if (unknown !== undefined) return `Malformed input request: extraneous key [${unknown}]`
    return refusalOfNova((more.reasoningConfig ?? {}) as Fields, body)
  }
  if (/openai\.gpt-oss/.test(model)) {
    const unknown = Object.keys(more).find((name) => name !== 'reasoning_effort')
    return unknown && `Malformed input request: extraneous key [${unknown}]`
  }
  return refusalOfClaude(model, {
    thinking: more.thinking as Fields | undefined,
    effort,
    sampling: { temperature, top_p: topP, top_k: more.top_k },
    maxTokens,
    isForced: choice === 'any' || choice === 'tool',
  })
}

function refusalOfNova({ maxReasoningEffort: effort }: Fields, body: Fields): string | undefined {
  if (effort === undefined) return undefined
  if (!['low', 'medium', 'high'].includes(String(effort)))
    return `reasoningConfig: ${String(effort)}`
  const set = Object.keys((body.inferenceConfig ?? {}) as Fields)
  const refused = set.find(
    (name) =>
      name === 'temperature' || name === 'topP' || (name === 'maxTokens' && effort === 'high'),
  )
  return refused && `inferenceConfig.${refused} must be unset when reasoning is enabled`
}

/** Efforts by model of vendor A, the first match counts. */
const effortsA: readonly (readonly [model: RegExp, efforts: readonly string[]])[] = [
  [/^(gpt-3|gpt-4|chatgpt)/, []],
  [/^gpt-5(\.\d)?-chat/, []],
  [/^o\d/, ['low', 'medium', 'high']],
  [/^gpt-5($|-)/, ['minimal', 'low', 'medium', 'high']],
  [/^gpt-5\.1/, ['none', 'low', 'medium', 'high']],
  [/^gpt-5\.[2-5]/, ['none', 'low', 'medium', 'high', 'xhigh']],
  [/^gpt-6-astra|^gpt-6\.1-sol/, ['low', 'medium', 'high', 'xhigh', 'max']],
  [/^gpt-(5\.6|6)/, ['none', 'low', 'medium', 'high', 'xhigh', 'max']],
]

const samplingA = ['temperature', 'top_p', 'frequency_penalty', 'presence_penalty']

export function refusalOfChat(model: string, body: Fields): string | undefined {
  if (/^mistral|^codestral/.test(model)) {
    return has(body, 'max_completion_tokens')
      ? 'max_completion_tokens: Extra inputs are not permitted'
      : undefined
  }
  const accepted = effortsA.find(([pattern]) => pattern.test(model))?.[1]
  if (accepted === undefined) return undefined
  const { reasoning_effort: effort, tools, verbosity } = body
  const isVerbose = /^gpt-(5|6)(?!.*-(chat|codex))/.test(model)
  if (verbosity !== undefined && verbosity !== 'medium' && !isVerbose) {
    return `Unsupported value: 'verbosity' does not support '${String(verbosity)}' with this model.`
  }
  if (effort !== undefined && !accepted.includes(String(effort))) {
    return `Unsupported value: 'reasoning_effort' does not support '${String(effort)}' with this model.`
  }
  if (accepted.length === 0) return undefined
  if (has(body, 'max_tokens')) {
    return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
  }
  const isLate = /^gpt-(5\.[3-9]|6)/.test(model)
  if (isLate && tools !== undefined && effort !== undefined && effort !== 'none') {
    return `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions.`
  }
  const rests = effort === 'none' || (effort === undefined && /^gpt-5\.[1-4]/.test(model))
  const set = samplingA.find((name) => has(body, name))
  return !rests && set !== undefined
    ? `Unsupported parameter: '${set}' is not supported with this model.`
    : undefined
}

export function refusalOfGenerate(model: string, body: Fields): string | undefined {
  const config = (body.generationConfig ?? {}) as Fields
  const thinking = (config.thinkingConfig ?? {}) as Fields
  const { thinkingBudget: budget, thinkingLevel: level } = thinking
  if (/gemini-3\.[678]|gemini-3\.5-flash-lite/.test(model)) {
    const set = ['temperature', 'topP', 'topK'].find((name) => has(config, name))
    if (set !== undefined) return `${set} is not supported for this model.`
  }
  if (/gemini-[12]\.[05]/.test(model) && level !== undefined) {
    return 'Thinking level is not supported for this model.'
  }
  if (model.includes('2.5-pro') && budget === 0) {
    return 'Budget 0 is invalid. This model only works in thinking mode.'
  }
  const [least, most] = model.includes('pro') ? [128, 32_768] : [0, 24_576]
  if (/gemini-2\.5/.test(model) && budget !== undefined && budget !== 0 && budget !== -1) {
    if (Number(budget) < least || Number(budget) > most) {
      return `The thinking budget ${String(budget)} is invalid. Please choose a value between ${least} and ${most}.`
    }
  }
  return refusalOfLevel(model, level)
}

function refusalOfLevel(model: string, level: unknown): string | undefined {
  if (level === undefined) return undefined
  const accepted = model.includes('gemini-3-pro')
    ? ['low', 'high']
    : /gemini-3(\.[156])?-flash/.test(model)
      ? ['minimal', 'low', 'medium', 'high']
      : ['low', 'medium', 'high']
  return accepted.includes(String(level).toLowerCase())
    ? undefined
    : `Thinking level ${String(level)} is not supported for this model.`
}
