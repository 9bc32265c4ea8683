/** Tools as clients of all formats describe them, and which of them a model is to call. */
import type { Chat, Tool, WebSearch } from '../chat.ts'
import { field, type JsonObject, listAt, numberAt, objectAt, stringAt } from '../json.ts'
import { toolSchema } from './tool-schema.ts'

export type ToolSettings = Pick<Chat, 'tools'> & Partial<Pick<Chat, 'webSearch' | 'toolChoice'>>

export function functionTool(name: string, made: unknown, schema: unknown): Tool {
  const description = stringAt(made, 'description')
  return { name, ...(description !== undefined && { description }), schema: toolSchema(schema) }
}

/**
 * A tool that takes plain text, for providers that know none: the text is the one property of an
 * object. A grammar is described to the model, but not enforced.
 */
export function customTool(name: string, made: unknown): Tool {
  const description = stringAt(made, 'description')
  const input = { type: 'string', ...grammarNote(objectAt(made, 'format')) }
  const schema = { type: 'object', properties: { input }, required: ['input'] }
  return { name, ...(description !== undefined && { description }), schema, custom: true }
}

function grammarNote(format: JsonObject | undefined): { description: string } | undefined {
  if (stringAt(format, 'type') !== 'grammar') return undefined
  // Chat completions have one object more around it.
  const grammar = objectAt(format, 'grammar') ?? format
  const syntax = stringAt(grammar, 'syntax') ?? ''
  return {
    description: `Text of this ${syntax} grammar:\n${stringAt(grammar, 'definition') ?? ''}`,
  }
}

const searchType = /^web_search(?:_preview)?(?:_\d{4}_?\d{2}_?\d{2})?$/

export const isWebSearch = (tool: unknown): boolean => searchType.test(stringAt(tool, 'type') ?? '')

/** A web search as any format describes it. */
export function readWebSearch(tool: unknown, path: string): WebSearch {
  const filters = objectAt(tool, 'filters')
  const allowed = domainsAt(tool, 'allowed_domains') ?? domainsAt(filters, 'allowed_domains')
  const blocked = domainsAt(tool, 'blocked_domains') ?? domainsAt(filters, 'blocked_domains')
  const maxUses = numberAt(tool, 'max_uses')
  const place = objectAt(tool, 'user_location')
  const { type: _type, ...location } = objectAt(place, 'approximate') ?? place ?? {}
  const contextSize = stringAt(tool, 'search_context_size')
  return {
    path,
    ...(maxUses !== undefined && { maxUses }),
    ...(allowed !== undefined && { allowedDomains: allowed }),
    ...(blocked !== undefined && { blockedDomains: blocked }),
    ...(Object.keys(location).length > 0 && { location }),
    ...(contextSize !== undefined && { contextSize }),
  }
}

function domainsAt(value: unknown, name: string): readonly unknown[] | undefined {
  const domains = listAt(value, name)
  return domains.length === 0 ? undefined : domains
}

/** The tools that the model may call, if the client allows some of them only. */
export function allowedTools(
  tools: readonly Tool[],
  allowed: unknown,
  nameOf: (tool: unknown) => string | undefined,
): ToolSettings {
  const names = new Set(listAt(allowed, 'tools').map(nameOf))
  const type = field(allowed, 'mode') === 'required' ? 'required' : 'auto'
  return { tools: tools.filter(({ name }) => names.has(name)), toolChoice: { type } }
}
