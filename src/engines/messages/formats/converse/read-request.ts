/** Converts a Converse request to the common form. */
import type { Chat, OutputFormat, Reasoning, Tool } from '../../chat.ts'
import { functionTool } from '../../common/client-settings.ts'
import { isEffort, showsThinkingIn } from '../../common/effort.ts'
import { readService } from '../../common/service.ts'
import {
  booleanAt,
  field,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { readConverseMessages, readPoints, readSystem } from './read-messages.ts'

/** Members of `additionalModelRequestFields` that are read, or that only vendor F needs. */
const knownFields: ReadonlySet<string> = new Set([
  ...['thinking', 'output_config', 'top_k', 'reasoning_effort', 'reasoningConfig'],
  ...['anthropic_beta', 'inferenceConfig'],
])

/** @throws LlmError 400 if the body is not a request in this format. */
export function readConverseRequest(body: JsonObject): Chat {
  for (const name of ['guardrailConfig', 'promptVariables']) {
    if (field(body, name) != null) throw unsupportedPart(name, 'resources of vendorF')
  }
  const fields = objectAt(body, 'additionalModelRequestFields')
  const other = Object.keys(fields ?? {}).find((name) => !knownFields.has(name))
  if (other !== undefined) {
    throw unsupportedPart(`additionalModelRequestFields.${other}`, 'fields of another model')
  }
  const config = objectAt(body, 'inferenceConfig')
  const stop = listAt(config, 'stopSequences').filter((one) => typeof one === 'string')
  return {
    model: stringAt(body, 'model') ?? '',
    system: readSystem(body),
    turns: readConverseMessages(body),
    ...readToolConfig(body),
    stream: booleanAt(body, 'stream') ?? false,
    maxTokens: numberAt(config, 'maxTokens'),
    service: readService(stringAt(objectAt(body, 'serviceTier'), 'type')),
    temperature: numberAt(config, 'temperature'),
    topP: numberAt(config, 'topP'),
    topK: numberAt(fields, 'top_k') ?? numberAt(objectAt(fields, 'inferenceConfig'), 'topK'),
    stop: stop.length === 0 ? undefined : stop,
    reasoning: readReasoning(fields),
    showsThinking: showsThinkingIn(objectAt(fields, 'thinking')),
    output: readOutput(body),
  }
}

function readReasoning(fields: unknown): Reasoning | undefined {
  const thinking = objectAt(fields, 'thinking')
  const effort = field(objectAt(fields, 'output_config'), 'effort')
  switch (stringAt(thinking, 'type')) {
    case 'enabled':
      return { type: 'budget', tokens: numberAt(thinking, 'budget_tokens') ?? 0 }
    case 'adaptive':
      return { type: 'adaptive', effort: isEffort(effort) ? effort : undefined }
    case 'disabled':
      return { type: 'off' }
    default:
      break
  }
  if (isEffort(effort)) return { type: 'effort', effort, isGuide: true }
  const nova = objectAt(fields, 'reasoningConfig')
  if (stringAt(nova, 'type') === 'disabled') return { type: 'off' }
  const wanted = field(nova, 'maxReasoningEffort') ?? field(fields, 'reasoning_effort')
  return isEffort(wanted) ? { type: 'effort', effort: wanted } : undefined
}

/** @throws LlmError 400 for tools that vendor F runs */
function readTool(tool: unknown, at: number): Tool[] {
  const spec = objectAt(tool, 'toolSpec')
  if (spec === undefined) throw unsupportedPart(`toolConfig.tools[${at}]`, 'tools of this kind')
  const schema = field(objectAt(spec, 'inputSchema'), 'json')
  return [functionTool(stringAt(spec, 'name') ?? '', spec, schema)]
}

function readToolConfig(body: unknown): Pick<Chat, 'tools' | 'toolChoice'> {
  const config = objectAt(body, 'toolConfig')
  const tools = readPoints(listAt(config, 'tools'), readTool)
  const choice = objectAt(config, 'toolChoice')
  if (choice === undefined) return { tools }
  const name = stringAt(objectAt(choice, 'tool'), 'name')
  if (name !== undefined) return { tools, toolChoice: { type: 'tool', name } }
  return { tools, toolChoice: { type: choice.any === undefined ? 'auto' : 'required' } }
}

/** The vendor has schemas as texts. */
function readOutput(body: unknown): OutputFormat | undefined {
  const format = objectAt(objectAt(body, 'outputConfig'), 'textFormat')
  if (stringAt(format, 'type') !== 'json_schema') return undefined
  const given = objectAt(objectAt(format, 'structure'), 'jsonSchema')
  const path = 'outputConfig.textFormat'
  const schema = parseJson(stringAt(given, 'schema') ?? '')
  if (!isObject(schema)) throw new LlmError(400, `${path}: the schema is not JSON`)
  const [name, description] = [stringAt(given, 'name'), stringAt(given, 'description')]
  return {
    ...{ type: 'schema', schema, strict: true, path },
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
  }
}
