/** Offline validation: checks a value against a schema, and reports one problem per invalid part. */
import { isObject } from '../base/json-object.ts'
import { failAll, type Outcome, succeed } from '../base/outcome.ts'
import { nearest } from '../base/suggest.ts'
import type { ListNode, MapNode, Node, ObjectNode, Rule, Schema } from './field.ts'
import { formatPath, type PathStep } from './path.ts'
import { countProblem, scalarProblem, scalarValue, textProblem, wrongType } from './scalars.ts'

/** A problem of one field of an object that a user wrote. */
export interface FieldProblem {
  /** Path of the field, such as `spec.traffic.csrf.additionalOrigins[2]`; empty for the whole value. */
  readonly path: string
  /** Completes the sentence "this field …". It is stable, so that scripts and tests may match it. */
  readonly message: string
}

/**
 * Checks a value that came from outside. The input is never changed; the value of a successful
 * outcome is a copy in which the fields with an upstream default are filled in.
 *
 * @param at path of the value inside the object that the problems are reported for
 */
export function check<T>(
  schema: Schema<T>,
  input: unknown,
  at: readonly PathStep[] = [],
): Outcome<T, FieldProblem> {
  const checker = new Checker(at)
  const value = checker.check(schema.node, input)
  const problems = [...checker.invalid, ...checker.violations]
  return problems.length === 0 ? succeed(value as T) : failAll(problems)
}

class Checker {
  /** Fields that are missing, unknown, of another type or out of bounds. */
  readonly invalid: FieldProblem[] = []
  /** Violated rules and repeated list items that must be unique; reported after all other problems. */
  readonly violations: FieldProblem[] = []
  /** Number of invalid values; unknown fields are not counted. */
  #invalidValues = 0
  /** Path of the value that is being checked. */
  readonly #path: PathStep[]

  constructor(at: readonly PathStep[]) {
    this.#path = [...at]
  }

  /** Checks a value and returns a copy, which has the type of the node only if there are no problems. */
  check(node: Node, input: unknown): unknown {
    const { length: invalidBefore } = this.invalid
    const { length: violationsBefore } = this.violations
    const copy = this.#checkParts(node, input)
    if (node.rules === undefined || input === undefined || input === null) return copy
    const isValid = this.invalid.length === invalidBefore
    const violated = node.rules.filter(
      (rule) => isApplicable(rule, input, isValid) && !obeys(rule, input),
    )
    if (violated.length === 0) return copy
    const found = violated.map((rule) => this.#problem(violation(rule, input), rule.at))
    this.violations.splice(violationsBefore, 0, ...found)
    return copy
  }

  #checkParts(node: Node, input: unknown): unknown {
    switch (node.type) {
      case 'list':
        return this.#checkList(node, input)
      case 'map':
        return this.#checkMap(node, input)
      case 'object':
        return this.#checkObject(node, input)
      default: {
        const value = scalarValue(node, input)
        this.#reject(scalarProblem(node, value))
        return value
      }
    }
  }

  #checkPart(node: Node, input: unknown, step: PathStep): unknown {
    this.#path.push(step)
    const copy = this.check(node, input)
    this.#path.pop()
    return copy
  }

  #checkList(node: ListNode, input: unknown): unknown {
    if (!Array.isArray(input)) return this.#reject(wrongType('a list', input))
    const before = this.#invalidValues
    const copy = input.map((item, index) => this.#checkPart(node.items, item, index))
    if (this.#invalidValues === before) {
      this.#reject(countProblem(input.length, 'item', node.min, node.max))
    }
    if (node.unique !== undefined) this.#checkUnique(node.unique, input)
    return copy
  }

  #checkUnique(unique: NonNullable<ListNode['unique']>, items: readonly unknown[]): void {
    const seen = new Map<string, number>()
    const what = unique === 'value' ? 'value' : unique.by.join(', ')
    for (const [index, item] of items.entries()) {
      const identity = identityOf(unique, item)
      const first = seen.get(identity)
      if (first === undefined) seen.set(identity, index)
      else this.violations.push(this.#problem(`has the same ${what} as item ${first}`, index))
    }
  }

  #checkMap(node: MapNode, input: unknown): unknown {
    if (!isObject(input)) return this.#reject(wrongType('an object', input))
    const before = this.#invalidValues
    const copy = Object.entries(input).map(
      ([key, value]) => [key, this.#checkPart(node.values, value, key)] as const,
    )
    if (this.#invalidValues === before) {
      this.#reject(countProblem(copy.length, 'entry', undefined, node.max))
      for (const [key] of copy) {
        const problem = node.keys && textProblem(node.keys, key)
        if (problem !== undefined) this.#reject(`key ${JSON.stringify(key)} ${problem}`)
      }
    }
    return Object.fromEntries(copy)
  }

  #checkObject(node: ObjectNode, input: unknown): unknown {
    if (!isObject(input)) return this.#reject(wrongType('an object', input))
    const copy: Record<string, unknown> = {}
    for (const { name, schema, required, fill } of fieldsOf(node)) {
      const isUnset = input[name] === null && node.open === true && !required && fill === undefined
      const value = isUnset ? undefined : input[name]
      if (value !== undefined || required) copy[name] = this.#checkPart(schema.node, value, name)
      else if (fill !== undefined) copy[name] = copyOf(fill)
    }
    for (const name of Object.keys(input)) {
      if (Object.hasOwn(node.fields, name)) continue
      if (node.open === true) addField(copy, name, input[name])
      else this.invalid.push(this.#problem(unknownField(name, node), name))
    }
    return copy
  }

  /** Reports that the value itself is not valid. */
  #reject(message: string | undefined): void {
    if (message === undefined) return
    this.#invalidValues++
    this.invalid.push(this.#problem(message))
  }

  #problem(message: string, below?: PathStep): FieldProblem {
    return { path: formatPath(below === undefined ? this.#path : [...this.#path, below]), message }
  }
}

type Fields = readonly ({ readonly name: string } & ObjectNode['fields'][string])[]

/** Kept for each node, because thousands of objects are checked by it. */
const fieldLists = new WeakMap<ObjectNode, Fields>()

function fieldsOf(node: ObjectNode): Fields {
  let fields = fieldLists.get(node)
  if (fields === undefined) {
    fields = Object.entries(node.fields).map(([name, field]) => ({ name, ...field }))
    fieldLists.set(node, fields)
  }
  return fields
}

const copyOf = (value: unknown) => (typeof value === 'object' ? structuredClone(value) : value)

/** Adds a field with any name; an assignment to `__proto__` would not. */
function addField(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  })
}

/** Returns true if a rule applies: the value is valid, or the rule only looks at which fields are set. */
function isApplicable(rule: Rule, input: unknown, isValid: boolean): boolean {
  return isValid || (rule.presence === true && isObject(input))
}

function violation({ message, example }: Rule, value: unknown): string {
  const written = example?.(value as never)
  return written === undefined ? message : `${message}: ${written}`
}

const obeys = (rule: Rule, value: unknown): boolean => rule.holds(value as never)

function unknownField(name: string, { advice, fields }: ObjectNode): string {
  const known = adviceFor(name, advice)
  if (known !== undefined) return `unknown field; ${known}`
  const meant = nearest(name, Object.keys(fields))
  return meant === undefined ? 'unknown field' : `unknown field; did you mean ${meant}?`
}

/** Finds advice by the name as it is written, or in lower case without separators. */
function adviceFor(name: string, advice: ObjectNode['advice'] = {}): string | undefined {
  const names = [name, name.slice(0, 64).toLowerCase().replaceAll(/[-_]/g, '')]
  const known = names.find((one) => Object.hasOwn(advice, one))
  return known === undefined ? undefined : advice[known]
}

function identityOf(unique: NonNullable<ListNode['unique']>, item: unknown): string {
  if (unique === 'value' || !isObject(item)) return JSON.stringify(item) ?? ''
  return JSON.stringify(unique.by.map((field) => item[field] ?? null))
}
