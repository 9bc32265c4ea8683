/** Reads settings that several client formats share: tools, tool choice, output format and effort. */
import type { Chat, OutputFormat, Reasoning, Tool, WebSearch } from '../chat.ts'
import {
  booleanAt,
  field,
  isObject,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
} from '../json/json.ts'
import { unsupportedPart } from '../llm-error.ts'
import { isEffort } from './effort.ts'

export function functionTool(name: string, tool: unknown, schema: unknown): Tool {
  const strict = booleanAt(tool, 'strict')
  return { name, description: stringAt(tool, 'description'), schema: toolSchema(schema), strict }
}

/** Adds the type of a schema, which is always `object`: clients may omit it, but providers require it. */
function toolSchema(schema: unknown): JsonObject {
  if (!isObject(schema)) return { type: 'object', properties: {} }
  if (field(schema, 'type') !== undefined) return schema
  return field(schema, 'properties') === undefined
    ? { type: 'object', properties: {}, ...schema }
    : { type: 'object', ...schema }
}

/**
 * Describes a tool that takes plain text to providers that have no such tools: the text becomes the only
 * property of an object. A grammar is described to the model, but not enforced.
 */
export function customTool(name: string, tool: unknown): Tool {
  const input = { type: 'string', ...grammarNote(objectAt(tool, 'format')) }
  const schema = { type: 'object', properties: { input }, required: ['input'] }
  return { name, description: stringAt(tool, 'description'), schema, custom: true }
}

function grammarNote(format: JsonObject | undefined): { description: string } | undefined {
  if (stringAt(format, 'type') !== 'grammar') return undefined
  // Chat completions wrap the grammar in one more object.
  const grammar = objectAt(format, 'grammar') ?? format
  const syntax = stringAt(grammar, 'syntax') ?? ''
  return {
    description: `Text of this ${syntax} grammar:\n${stringAt(grammar, 'definition') ?? ''}`,
  }
}

/** Types of web searches in any client format. */
const searchType = /^web_search(?:_preview)?(?:_\d{4}_?\d{2}_?\d{2})?$/

export const isWebSearch = (tool: unknown): boolean => searchType.test(stringAt(tool, 'type') ?? '')

/** Reads `tools` with `readTool`, except for web searches. */
export function readTools(
  body: unknown,
  readTool: (tool: unknown, path: string) => Tool,
): Pick<Chat, 'tools' | 'webSearch'> {
  let webSearch: WebSearch | undefined
  const tools: Tool[] = []
  for (const [at, tool] of listAt(body, 'tools').entries()) {
    const path = `tools[${at}]`
    if (isWebSearch(tool)) webSearch = readWebSearch(tool, path)
    else tools.push(readTool(tool, path))
  }
  return { tools, webSearch }
}

/** Reads a web search tool; handles the field names of all client formats. */
export function readWebSearch(tool: unknown, path: string): WebSearch {
  const filters = objectAt(tool, 'filters')
  const place = objectAt(tool, 'user_location')
  const { type: _type, ...location } = objectAt(place, 'approximate') ?? place ?? {}
  return {
    path,
    maxUses: numberAt(tool, 'max_uses'),
    allowedDomains: domainsAt(tool, 'allowed_domains') ?? domainsAt(filters, 'allowed_domains'),
    blockedDomains: domainsAt(tool, 'blocked_domains') ?? domainsAt(filters, 'blocked_domains'),
    location: Object.keys(location).length > 0 ? location : undefined,
    contextSize: stringAt(tool, 'search_context_size'),
  }
}

function domainsAt(value: unknown, name: string): readonly unknown[] | undefined {
  const domains = listAt(value, name)
  return domains.length === 0 ? undefined : domains
}

/**
 * Reads a tool choice of the completions or responses format. `allowed` is the object that limits the
 * choice to some tools, if there is one. `nameOf` returns the tool name in an object.
 */
export function readToolChoice(
  choice: unknown,
  tools: readonly Tool[],
  allowed: unknown,
  nameOf: (tool: unknown) => string | undefined,
): Pick<Chat, 'tools' | 'toolChoice'> {
  if (choice == null) return { tools }
  if (choice === 'auto' || choice === 'required' || choice === 'none') {
    return { tools, toolChoice: { type: choice } }
  }
  if (allowed !== undefined) {
    const names = new Set(listAt(allowed, 'tools').map(nameOf))
    const type = field(allowed, 'mode') === 'required' ? 'required' : 'auto'
    return { tools: tools.filter(({ name }) => names.has(name)), toolChoice: { type } }
  }
  const name = nameOf(choice)
  if (name === undefined) throw unsupportedPart('tool_choice', 'choices of this form')
  return { tools, toolChoice: { type: 'tool', name } }
}

/**
 * `type` is the type of the output; `described` is the object with the schema, for `json_schema`, and `path` its path.
 */
export function readOutput(
  type: string | undefined,
  described: unknown,
  path: string,
): OutputFormat | undefined {
  if (type === 'json_object') return { type: 'json' }
  if (type !== 'json_schema') return undefined
  const name = stringAt(described, 'name')
  const description = stringAt(described, 'description')
  const strict = booleanAt(described, 'strict')
  const schema = field(described, 'schema') ?? {}
  return { type: 'schema', name, description, schema, strict, path }
}

export function readEffort(effort: unknown): Reasoning | undefined {
  if (!isEffort(effort)) return undefined
  return effort === 'none' ? { type: 'off' } : { type: 'effort', effort }
}

/** Reads fields of the generate-content format, which requests in every client format may contain. */
export function readGenerateContentFields(body: unknown): JsonObject {
  return {
    safetySettings: field(body, 'safetySettings'),
    cachedContent: stringAt(body, 'cachedContent'),
    labels: objectAt(body, 'labels'),
  }
}
