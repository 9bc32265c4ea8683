/** Converts a chat completion request to the common form. */
import type { Chat, Reasoning, Tool } from '../../chat.ts'
import { cacheOf } from '../../common/cache-control.ts'
import {
  customTool,
  functionTool,
  readEffort,
  readGenerateContentFields,
  readOutput,
  readToolChoice,
  readTools,
  readWebSearch,
} from '../../common/client-settings.ts'
import { readService } from '../../common/service.ts'
import {
  booleanAt,
  field,
  listAt,
  needList,
  numberAt,
  objectAt,
  stringAt,
} from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { readMessages } from './read-messages.ts'

function readTool(tool: unknown, path: string): Tool {
  const type = stringAt(tool, 'type')
  if (type !== 'function' && type !== 'custom') {
    throw unsupportedPart(path, `tools of type ${String(type)}`)
  }
  const described = objectAt(tool, type)
  const name = stringAt(described, 'name')
  if (name === undefined) throw new LlmError(400, `${path}.${type}.name must be a string`)
  const cache = cacheOf(tool) ?? cacheOf(described)
  const read =
    type === 'custom'
      ? customTool(name, described)
      : functionTool(name, described, field(described, 'parameters'))
  return cache === undefined ? read : { ...read, cache }
}

const nameOfTool = (tool: unknown): string | undefined =>
  stringAt(objectAt(tool, 'function') ?? objectAt(tool, 'custom'), 'name')

function readToolSettings(body: unknown): Pick<Chat, 'tools' | 'webSearch' | 'toolChoice'> {
  if (listAt(body, 'functions').length > 0) {
    throw unsupportedPart('functions', 'functions outside of tools')
  }
  const options = objectAt(body, 'web_search_options')
  const { tools, webSearch } = readTools(body, readTool)
  const choice = field(body, 'tool_choice')
  return {
    webSearch: webSearch ?? (options && readWebSearch(options, 'web_search_options')),
    ...readToolChoice(choice, tools, objectAt(choice, 'allowed_tools'), nameOfTool),
  }
}

function readStop(stop: unknown): readonly string[] | undefined {
  if (typeof stop === 'string') return [stop]
  if (!Array.isArray(stop)) return undefined
  return stop.filter((one): one is string => typeof one === 'string')
}

/** `thinking_budget_tokens` is an extension that several gateways share. */
function readReasoning(body: unknown): Reasoning | undefined {
  const tokens = numberAt(body, 'thinking_budget_tokens')
  return tokens === undefined
    ? readEffort(field(body, 'reasoning_effort'))
    : { type: 'budget', tokens }
}

/** Refuses settings without which the response would be another one. @throws LlmError 400 */
function refuseOtherMeanings(body: unknown): void {
  if (booleanAt(body, 'logprobs') === true) throw unsupportedPart('logprobs', 'log probabilities')
  if (Object.keys(objectAt(body, 'logit_bias') ?? {}).length > 0) {
    throw unsupportedPart('logit_bias', 'biases of tokens')
  }
}

/** @throws LlmError 400 if the body is not a chat completion request. */
export function readCompletionsRequest(body: unknown): Chat {
  refuseOtherMeanings(body)
  const modalities = listAt(body, 'modalities')
  if (modalities.includes('audio')) throw unsupportedPart('modalities', 'audio answers')
  const format = objectAt(body, 'response_format')
  return {
    model: stringAt(body, 'model') ?? '',
    ...readMessages(needList(body, 'messages')),
    ...readToolSettings(body),
    images: modalities.includes('image'),
    stream: booleanAt(body, 'stream') ?? false,
    parallelTools: booleanAt(body, 'parallel_tool_calls'),
    maxTokens: numberAt(body, 'max_completion_tokens') ?? numberAt(body, 'max_tokens'),
    temperature: numberAt(body, 'temperature'),
    topP: numberAt(body, 'top_p'),
    topK: numberAt(body, 'top_k'),
    stop: readStop(field(body, 'stop')),
    seed: numberAt(body, 'seed'),
    frequencyPenalty: numberAt(body, 'frequency_penalty'),
    presencePenalty: numberAt(body, 'presence_penalty'),
    choices: numberAt(body, 'n'),
    reasoning: readReasoning(body),
    // The format has no field that asks for the thinking, and clients that can show it expect it.
    showsThinking: true,
    output: readOutput(
      stringAt(format, 'type'),
      objectAt(format, 'json_schema'),
      'response_format',
    ),
    user: stringAt(body, 'user'),
    service: readService(stringAt(body, 'service_tier')),
    verbosity: stringAt(body, 'verbosity'),
    cache: cacheOf(body),
    generateContent: readGenerateContentFields(body),
  }
}
