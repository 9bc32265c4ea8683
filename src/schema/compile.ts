/** Nodes -> zod types. The only place that knows zod. */
import { z } from 'zod'
import type {
  AnyProperty,
  IntegerNode,
  IntOrStringNode,
  JsonNode,
  MapNode,
  Node,
  ObjectNode,
  TextNode,
} from './field.ts'
import { byteSizeForm, quantityValue } from './quantity.ts'

const compiled = new WeakMap<Node, z.ZodType>()

/** The zod type of a node; made once per node. */
export function compile(node: Node): z.ZodType {
  const known = compiled.get(node)
  if (known !== undefined) return known
  const made = build(node)
  compiled.set(node, made)
  return made
}

function build(node: Node): z.ZodType {
  switch (node.type) {
    case 'text':
      return textType(node)
    case 'integer':
      return integerType(node)
    case 'boolean':
      return z.boolean({ error: (issue) => wrongType('true or false', issue.input) })
    case 'list':
      return z
        .array(compile(node.items), {
          error: (issue) => wrongType('a list', issue.input),
        })
        .check((context) => {
          report(context, countProblem(context.value.length, 'item', node.min, node.max))
        })
    case 'map':
      return mapType(node)
    case 'object':
      return objectType(node)
    case 'json':
      return jsonType(node)
    case 'intOrString':
      return intOrStringType(node)
  }
}

function intOrStringType(node: IntOrStringNode): z.ZodType {
  const type = z.union([z.string(), z.int()], {
    error: (issue) => wrongType('an integer or a string', issue.input),
  })
  if (node.pattern === undefined) return type
  return type.check((context) => {
    if (typeof context.value === 'string') report(context, patternProblem(node, context.value))
  })
}

interface CheckContext {
  readonly value: unknown
  readonly issues: { push(issue: { code: 'custom'; message: string; input: unknown }): unknown }
}

function report(context: CheckContext, message: string | undefined): void {
  if (message !== undefined) context.issues.push({ code: 'custom', message, input: context.value })
}

function textType(node: TextNode): z.ZodType {
  return z
    .string({ error: (issue) => wrongText(node, issue.input) })
    .check((context) => report(context, textProblem(node, context.value)))
}

/** What is wrong with a string, or undefined. */
function textProblem(node: TextNode, value: string): string | undefined {
  if (node.values !== undefined) {
    return node.values.includes(value) ? undefined : `must be one of ${node.values.join(', ')}`
  }
  const length = countCharacters(value)
  if (node.min !== undefined && length < node.min) {
    return node.min === 1 ? 'must not be empty' : `must have at least ${node.min} characters`
  }
  if (node.max !== undefined && length > node.max) {
    return `must have at most ${node.max} characters, has ${length}`
  }
  return patternProblem(node, value)
}

function patternProblem(
  { pattern, expects }: Pick<TextNode, 'pattern' | 'expects'>,
  value: string,
): string | undefined {
  if (pattern === undefined || patternOf(pattern).test(value)) return undefined
  return `must be ${expects ?? `like ${pattern}`}`
}

const patterns = new Map<string, RegExp>()

function patternOf(source: string): RegExp {
  let pattern = patterns.get(source)
  if (pattern === undefined) {
    pattern = new RegExp(source)
    patterns.set(source, pattern)
  }
  return pattern
}

/** Unicode code points, the unit in which JSON Schema and the API server measure length. */
function countCharacters(value: string): number {
  let count = value.length
  for (let index = 0; index < value.length - 1; index++) {
    const code = value.charCodeAt(index)
    if (code < 0xd800 || code > 0xdbff) continue
    const next = value.charCodeAt(index + 1)
    if (next >= 0xdc00 && next <= 0xdfff) {
      count--
      index++
    }
  }
  return count
}

function integerType(node: IntegerNode): z.ZodType {
  const isBytes = node.bytes === true
  const expected = isBytes ? byteSizeForm : 'an integer'
  const type = z
    .number({ error: (issue) => wrongType(expected, issue.input) })
    .check((context) => report(context, integerProblem(node, context.value)))
  return isBytes ? z.preprocess((value) => quantityValue(value) ?? value, type) : type
}

function integerProblem(node: IntegerNode, value: number): string | undefined {
  if (!Number.isInteger(value)) return 'must be an integer'
  if (node.values !== undefined && !node.values.includes(value)) {
    return `must be one of ${node.values.join(', ')}`
  }
  if (node.min !== undefined && value < node.min) return `must be at least ${node.min}`
  if (node.max !== undefined && value > node.max) return `must be at most ${node.max}`
  return Number.isSafeInteger(value) ? undefined : 'must be an integer'
}

function mapType(node: MapNode): z.ZodType {
  return z
    .record(z.string(), compile(node.values), {
      error: (issue) => wrongType('an object', issue.input),
    })
    .check((context) => {
      const keys = Object.keys(context.value)
      report(context, countProblem(keys.length, 'entry', undefined, node.max))
      const { keys: keyNode } = node
      if (keyNode === undefined) return
      for (const key of keys) {
        const problem = textProblem(keyNode, key)
        if (problem !== undefined) report(context, `key ${JSON.stringify(key)} ${problem}`)
      }
    })
}

function objectType(node: ObjectNode): z.ZodType {
  const shape: Record<string, z.ZodType> = {}
  for (const [name, property] of Object.entries(node.fields)) {
    shape[name] = propertyType(property, node.open === true)
  }
  const error = (issue: { readonly code?: string; readonly input?: unknown }) =>
    issue.code === 'unrecognized_keys' ? undefined : wrongType('an object', issue.input)
  return node.open === true ? z.looseObject(shape, { error }) : z.strictObject(shape, { error })
}

function propertyType(property: AnyProperty, open: boolean): z.ZodType {
  const type = compile(property.schema.node)
  if (property.fill !== undefined) {
    const fill = property.fill
    return type.default(() => structuredClone(fill) as never)
  }
  if (property.required) return type
  return open ? z.preprocess((value) => value ?? undefined, type.optional()) : type.optional()
}

function jsonType(node: JsonNode): z.ZodType {
  return z.unknown().check((context) => {
    const { value } = context
    if (value === undefined) return report(context, 'is required')
    if (node.objectOnly === true && !isPlainObject(value)) {
      return report(context, wrongType('an object', value))
    }
    if (!isJson(value)) report(context, 'must be JSON')
  })
}

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isJson)
  return isPlainObject(value) && Object.values(value).every(isJson)
}

/** An object with fields, as JSON and YAML give it. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function countProblem(
  count: number,
  noun: 'item' | 'entry',
  min: number | undefined,
  max: number | undefined,
): string | undefined {
  const nouns = (n: number) =>
    n === 1 ? `1 ${noun}` : `${n} ${noun === 'item' ? 'items' : 'entries'}`
  if (min !== undefined && count < min) return `must have at least ${nouns(min)}`
  if (max !== undefined && count > max) return `must have at most ${nouns(max)}, has ${count}`
  return undefined
}

function wrongText(node: TextNode, input: unknown): string {
  const message = wrongType('a string', input)
  if (typeof input !== 'number' && typeof input !== 'boolean') return message
  const quoted = node.values?.find((value) => Number(value) === input) ?? String(input)
  return `${message}; write it in quotes: "${quoted}"`
}

function wrongType(expected: string, input: unknown): string {
  if (input === undefined) return 'is required'
  if (input === null) return `must be ${expected}, not null; leave the field out to unset it`
  return `must be ${expected}, not ${describe(input)}`
}

function describe(input: unknown): string {
  if (Array.isArray(input)) return 'a list'
  switch (typeof input) {
    case 'string':
      return 'a string'
    case 'number':
      return Number.isInteger(input) ? 'an integer' : 'a number'
    case 'boolean':
      return 'a boolean'
    default:
      return 'an object'
  }
}
