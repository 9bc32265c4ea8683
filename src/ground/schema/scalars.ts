/** Checks values that have no parts: texts, numbers, booleans and JSON. */
import { isObject } from '../base/json-object.ts'
import type {
  IntegerNode,
  IntOrStringNode,
  JsonNode,
  ListNode,
  MapNode,
  Node,
  ObjectNode,
  TextNode,
} from './field.ts'
import { byteSizeForm, quantityValue } from './quantity.ts'

type ScalarNode = Exclude<Node, ListNode | MapNode | ObjectNode>

/** Converts a quantity of bytes to a number; returns any other input unchanged. */
export function scalarValue(node: ScalarNode, input: unknown): unknown {
  return node.type === 'integer' && node.bytes === true ? (quantityValue(input) ?? input) : input
}

/** Returns what is wrong with a value, or undefined. */
export function scalarProblem(node: ScalarNode, value: unknown): string | undefined {
  switch (node.type) {
    case 'text':
      return typeof value === 'string' ? textProblem(node, value) : wrongText(node, value)
    case 'integer':
      if (Number.isFinite(value)) return integerProblem(node, value as number)
      return wrongType(node.bytes === true ? byteSizeForm : 'an integer', value)
    case 'boolean':
      return typeof value === 'boolean' ? undefined : wrongType('true or false', value)
    case 'json':
      return jsonProblem(node, value)
    case 'intOrString':
      return intOrStringProblem(node, value)
  }
}

/** Returns what is wrong with a string, or undefined. */
export function textProblem(node: TextNode, value: string): string | undefined {
  if (node.values !== undefined) {
    return node.values.includes(value) ? undefined : `must be one of ${node.values.join(', ')}`
  }
  return lengthProblem(node, value) ?? patternProblem(node, value)
}

function lengthProblem({ min, max }: TextNode, value: string): string | undefined {
  // A character has one or two UTF-16 units, so that the characters of most texts need not be counted.
  const isLongEnough = min === undefined || value.length >= 2 * min - 1
  if (isLongEnough && (max === undefined || value.length <= max)) return undefined
  const length = countCharacters(value)
  if (min !== undefined && length < min) {
    return min === 1 ? 'must not be empty' : `must have at least ${min} characters`
  }
  return max !== undefined && length > max
    ? `must have at most ${max} characters, has ${length}`
    : undefined
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

/** Counts Unicode code points, the unit in which JSON Schema and the API server measure length. */
function countCharacters(value: string): number {
  return /[\ud800-\udbff]/.test(value) ? [...value].length : value.length
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

function intOrStringProblem(node: IntOrStringNode, value: unknown): string | undefined {
  if (typeof value === 'string') return patternProblem(node, value)
  if (!Number.isInteger(value)) return wrongType('an integer or a string', value)
  return Number.isSafeInteger(value) ? undefined : 'must be an integer of at most 15 digits'
}

function jsonProblem(node: JsonNode, value: unknown): string | undefined {
  if (value === undefined) return 'is required'
  if (node.objectOnly === true && !isObject(value)) return wrongType('an object', value)
  return isJson(value) ? undefined : 'must be JSON'
}

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value)
  if (Array.isArray(value)) return value.every(isJson)
  return isObject(value) && Object.values(value).every(isJson)
}

/** Returns what is wrong with the number of items or entries, or undefined. */
export function countProblem(
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
  if (patternProblem(node, quoted) === undefined)
    return `${message}; write it in quotes: "${quoted}"`
  // A duration without its unit.
  const inSeconds = `${input}s`
  return patternProblem(node, inSeconds) === undefined
    ? `${message}, such as ${inSeconds}`
    : message
}

/** Returns a message that names the expected and the actual type. */
export function wrongType(expected: string, input: unknown): string {
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
