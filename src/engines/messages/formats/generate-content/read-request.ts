/** Converts a request of vendor D's clients to the common form. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type { Chat, OutputFormat, Reasoning, Tool, WebSearch } from '../../chat.ts'
import { functionTool } from '../../common/client-settings.ts'
import { isEffort } from '../../common/effort.ts'
import { readService } from '../../common/service.ts'
import { checkShape } from '../../common/shape.ts'
import {
  booleanAt,
  field,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
} from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { withCamelNames } from './names.ts'
import { plainSchema } from './open-schema.ts'
import { readContents, readSystem } from './read-contents.ts'
import { generateContentShape } from './shape.ts'

/** Settings that change what a response is, and that other vendors do not have. */
const refusedSettings: readonly (readonly [name: string, what: string])[] = [
  ['responseLogprobs', 'log probabilities'],
  ['speechConfig', 'spoken responses'],
  ['imageConfig', 'settings of images'],
  ['responseFormat', 'formats of responses'],
]

/** @throws LlmError 400 if the body is not a request in this format. */
export function readGenerateContentRequest(original: JsonObject): Chat {
  const body = withCamelNames(original)
  checkShape(generateContentShape, body, '')
  if (stringAt(body, 'cachedContent')) throw unsupportedPart('cachedContent', 'caches of contents')
  const config = objectAt(body, 'generationConfig')
  for (const [name, what] of refusedSettings) {
    const value = field(config, name)
    if (value !== undefined && value !== false && value !== null) {
      throw unsupportedPart(`generationConfig.${name}`, what)
    }
  }
  const stream = booleanAt(body, 'stream') ?? false
  const stop = listAt(config, 'stopSequences').filter((one) => typeof one === 'string')
  const choices = numberAt(config, 'candidateCount')
  const thinking = objectAt(config, 'thinkingConfig')
  return {
    model: stringAt(body, 'model') ?? '',
    system: readSystem(body),
    turns: readContents(body),
    ...readToolsAndChoice(body),
    stream,
    maxTokens: numberAt(config, 'maxOutputTokens'),
    service: readService(stringAt(body, 'serviceTier')),
    temperature: numberAt(config, 'temperature'),
    topP: numberAt(config, 'topP'),
    topK: numberAt(config, 'topK'),
    seed: numberAt(config, 'seed'),
    frequencyPenalty: numberAt(config, 'frequencyPenalty'),
    presencePenalty: numberAt(config, 'presencePenalty'),
    choices: choices === 1 ? undefined : choices,
    stop: stop.length === 0 ? undefined : stop,
    reasoning: readReasoning(thinking),
    showsThinking: booleanAt(thinking, 'includeThoughts'),
    output: readOutput(config),
    images: readModalities(config),
  }
}

function readReasoning(thinking: unknown): Reasoning | undefined {
  const level = stringAt(thinking, 'thinkingLevel')?.toLowerCase()
  if (isEffort(level)) return { type: 'effort', effort: level }
  const budget = numberAt(thinking, 'thinkingBudget')
  if (budget === undefined) return undefined
  if (budget === 0) return { type: 'off' }
  return budget < 0 ? { type: 'adaptive' } : { type: 'budget', tokens: budget }
}

/** Returns whether the client asks for images. @throws LlmError 400 if it asks for sound */
function readModalities(config: unknown): boolean | undefined {
  const modalities = listAt(config, 'responseModalities').map((one) => String(one).toUpperCase())
  if (modalities.includes('AUDIO')) {
    throw unsupportedPart('generationConfig.responseModalities', 'spoken responses')
  }
  return modalities.includes('IMAGE') ? true : undefined
}

function readOutput(config: unknown): OutputFormat | undefined {
  const type = stringAt(config, 'responseMimeType') ?? 'text/plain'
  const given = field(config, 'responseJsonSchema')
  const schema = given ?? objectAt(config, 'responseSchema')
  if (type === 'text/plain' && schema === undefined) return undefined
  if (type !== 'application/json') {
    throw unsupportedPart('generationConfig.responseMimeType', `responses of type ${type}`)
  }
  if (schema === undefined) return { type: 'json' }
  const name = given === undefined ? 'responseSchema' : 'responseJsonSchema'
  const plain = given === undefined ? plainSchema(schema) : schema
  return { type: 'schema', schema: plain, strict: true, path: `generationConfig.${name}` }
}

function readTool(declaration: unknown): Tool {
  const given = field(declaration, 'parametersJsonSchema')
  const own = objectAt(declaration, 'parameters')
  const schema = given ?? (own && plainSchema(own))
  return functionTool(stringAt(declaration, 'name') ?? '', declaration, schema)
}

/** Reads the tools. Only searches have a counterpart among those that vendor D runs. */
function readTools(body: unknown): { readonly tools: Tool[]; readonly webSearch?: WebSearch } {
  const tools: Tool[] = []
  let webSearch: WebSearch | undefined
  for (const [at, tool] of listAt(body, 'tools').entries()) {
    for (const name of Object.keys(tool as JsonObject)) {
      const path = `tools[${at}].${name}`
      if (name === 'functionDeclarations') appendAll(tools, listAt(tool, name).map(readTool))
      else if (name === 'googleSearch' || name === 'googleSearchRetrieval') webSearch = { path }
      else throw unsupportedPart(path, 'tools of this kind')
    }
  }
  return webSearch === undefined ? { tools } : { tools, webSearch }
}

/** A choice of several functions leaves the others out. */
function readToolsAndChoice(body: unknown): Pick<Chat, 'tools' | 'webSearch' | 'toolChoice'> {
  const read = readTools(body)
  const config = objectAt(objectAt(body, 'toolConfig'), 'functionCallingConfig')
  const mode = stringAt(config, 'mode')?.toUpperCase()
  const names = listAt(config, 'allowedFunctionNames')
  switch (mode) {
    case undefined:
    case 'MODE_UNSPECIFIED':
      return read
    case 'AUTO':
    case 'VALIDATED':
      return { ...read, tools: allowed(read.tools, names), toolChoice: { type: 'auto' } }
    case 'NONE':
      return { ...read, toolChoice: { type: 'none' } }
    case 'ANY': {
      const [name] = names
      if (names.length === 1 && typeof name === 'string') {
        return { ...read, toolChoice: { type: 'tool', name } }
      }
      return { ...read, tools: allowed(read.tools, names), toolChoice: { type: 'required' } }
    }
    default:
      throw new LlmError(400, `toolConfig.functionCallingConfig.mode: unknown mode ${mode}`)
  }
}

const allowed = (tools: Tool[], names: readonly unknown[]): Tool[] =>
  names.length === 0 ? tools : tools.filter(({ name }) => names.includes(name))
