/** Decides which requests have answers that may be served again. */
import { isObject, type JsonObject } from '../../../../engines/messages/json/json.ts'

/** Members by which a request refers to something whose content can change, or which the provider keeps. */
const references = new Set([
  ...['url', 'uri', 'image_url', 'file_url', 'fileUri', 'file_uri', 'file_id', 'fileId'],
  ...['previous_response_id', 'conversation', 'container', 'cachedContent', 'cached_content'],
])
/** Members with which the provider does more than generate. */
const effects = ['web_search_options', 'search_parameters', 'plugins', 'mcp_servers', 'background']

/** Members of tools that the client runs itself. */
const clientTools = [
  ...['function', 'parameters', 'input_schema', 'toolSpec', 'inputSchema'],
  ...['functionDeclarations', 'function_declarations'],
]
const clientTypes: readonly unknown[] = [undefined, 'function', 'custom']

/** Returns why the answer to a request must not be served again; undefined if it may. */
export function whyNotCacheable(body: JsonObject): string | undefined {
  const effect = effects.find((name) => isSet(body[name]))
  if (effect !== undefined) return `the request has ${effect}`
  if (isObject(body.prompt)) return 'the request has a stored prompt'
  if (!toolsOf(body).every(isOfClient)) return 'the provider runs a tool of the request'
  const reference = referenceIn(body)
  return reference && `the request refers to content by ${reference}`
}

const isSet = (value: unknown): boolean =>
  value != null && value !== false && !(Array.isArray(value) && value.length === 0)

function toolsOf({ tools, toolConfig }: JsonObject): readonly unknown[] {
  const inner = isObject(toolConfig) ? toolConfig.tools : undefined
  return [tools, inner].flatMap((list) => (Array.isArray(list) ? list : list == null ? [] : [list]))
}

/** A cache point among the tools is accepted only if it has a member of a client's tool. */
function isOfClient(tool: unknown): boolean {
  if (!isObject(tool) || !clientTypes.includes(tool.type)) return false
  const isDeclaration = (name: string) =>
    name === 'functionDeclarations' || name === 'function_declarations'
  const names = Object.keys(tool)
  // An object with declarations may have tools of the provider as well.
  if (names.some(isDeclaration)) return names.every(isDeclaration)
  return tool.type === 'custom' || names.some((name) => clientTools.includes(name))
}

/** Returns the name of the first member that refers to content; linear in the size of the request. */
function referenceIn(value: unknown): string | undefined {
  if (Array.isArray(value)) {
    for (const item of value) {
      const found = referenceIn(item)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (!isObject(value)) return undefined
  for (const name in value) {
    const member = value[name]
    if (references.has(name) && isReference(member)) return name
    const found = typeof member === 'object' ? referenceIn(member) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

const isReference = (value: unknown): boolean =>
  typeof value === 'string' && value !== '' && !value.startsWith('data:')
