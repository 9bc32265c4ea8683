/** What vendors refuse of schemas that they enforce, and of caches. */

type Fields = Record<string, unknown>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const closedKeywords = [
  ...['type', 'properties', 'required', 'additionalProperties', 'items', 'enum', 'const', 'anyOf'],
  ...['allOf', '$ref', '$defs', 'title', 'description', 'format', 'minItems'],
]

/** What Claude models refuse of a schema that they enforce. */
export function refusalOfClosed(schema: unknown, where: string): string | undefined {
  if (!isObject(schema)) return undefined
  const unknown = Object.keys(schema).find((key) => !closedKeywords.includes(key))
  const { type, properties, additionalProperties, minItems = 0 } = schema
  if (unknown !== undefined) {
    return `${where}: For '${String(type)}' type, properties ${unknown} are not supported`
  }
  if (Number(minItems) > 1) return `${where}: minItems ${String(minItems)}`
  if (type === 'object' && additionalProperties !== false) {
    return `${where}: For 'object' type, 'additionalProperties' must be explicitly set to false`
  }
  const inner = [
    ...Object.values(isObject(properties) ? properties : {}),
    ...Object.values(isObject(schema.$defs) ? schema.$defs : {}),
    ...listOf(schema.anyOf),
    ...listOf(schema.allOf),
    schema.items,
  ]
  for (const one of inner) {
    const problem = refusalOfClosed(one, where)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** What vendor A refuses of a schema that it enforces. */
export function refusalOfStrict(schema: unknown, where: string): string | undefined {
  if (!isObject(schema)) return undefined
  const { type, properties, required, additionalProperties } = schema
  const names = Object.keys(isObject(properties) ? properties : {})
  if (type === 'object' && additionalProperties !== false) {
    return `Invalid schema for ${where}: 'additionalProperties' is required to be supplied and to be false.`
  }
  const missing = names.find((name) => !listOf(required).includes(name))
  if (missing !== undefined) {
    return `Invalid schema for ${where}: 'required' is required to be an array including every key in properties. Missing '${missing}'.`
  }
  for (const one of [...Object.values(isObject(properties) ? properties : {}), schema.items]) {
    const problem = refusalOfStrict(one, where)
    if (problem !== undefined) return problem
  }
  return undefined
}

export function refusalOfMessagesSchemas(body: Fields): string | undefined {
  const { format } = (body.output_config ?? {}) as Fields
  const output = isObject(format)
    ? refusalOfClosed(format.schema, 'output_config.format.schema')
    : undefined
  if (output !== undefined) return output
  for (const tool of listOf(body.tools)) {
    if (!isObject(tool) || tool.strict !== true) continue
    const problem = refusalOfClosed(tool.input_schema, `tools.${String(tool.name)}`)
    if (problem !== undefined) return problem
  }
  if (listOf(body.tools).length === 0 && body.tool_choice !== undefined) {
    return 'tool_choice may only be specified while providing tools.'
  }
  return undefined
}

export function refusalOfChatSchemas(body: Fields): string | undefined {
  const { json_schema: output } = (body.response_format ?? {}) as Fields
  const format =
    isObject(output) && output.strict === true
      ? refusalOfStrict(output.schema, 'response_format')
      : undefined
  if (format !== undefined) return format
  for (const tool of listOf(body.tools)) {
    const { function: made } = tool as Fields
    if (!isObject(made) || made.strict !== true) continue
    const problem = refusalOfStrict(made.parameters, `function '${String(made.name)}'`)
    if (problem !== undefined) return problem
  }
  const lone = ['tool_choice', 'parallel_tool_calls'].find((name) => body[name] !== undefined)
  return listOf(body.tools).length === 0 && lone !== undefined
    ? `'${lone}' is only allowed when 'tools' are specified.`
    : undefined
}

/** `model` decides about lifetimes of caches and about strict tools. */
export function refusalOfConverseSchemas(model: string, body: Fields): string | undefined {
  const { textFormat } = (body.outputConfig ?? {}) as Fields
  const { structure } = (textFormat ?? {}) as { structure?: { jsonSchema?: { schema?: string } } }
  const text = structure?.jsonSchema?.schema
  const output = text === undefined ? undefined : refusalOfClosed(JSON.parse(text), 'textFormat')
  if (output !== undefined) return output
  const { tools } = (body.toolConfig ?? {}) as Fields
  for (const tool of listOf(tools)) {
    const { toolSpec } = tool as Fields
    if (!isObject(toolSpec) || toolSpec.strict === undefined) continue
    if (/nova|claude-(opus-4-[78]|\w+-5)/.test(model))
      return 'strict is not supported by this model'
    const { json } = (toolSpec.inputSchema ?? {}) as Fields
    const problem = refusalOfClosed(json, `tools.${String(toolSpec.name)}`)
    if (problem !== undefined) return problem
  }
  const ttl = /"ttl":"1h"/.test(JSON.stringify(body))
  return ttl && model.includes('nova') ? 'ttl 1h is not supported by this model' : undefined
}
