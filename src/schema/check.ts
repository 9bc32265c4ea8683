/** Offline validation: a value against a schema, with one problem per broken place. */
import { fail, failAll, type Outcome, succeed } from '../base/outcome.ts'
import { compile, isPlainObject } from './compile.ts'
import type { ListNode, Node, ObjectNode, Rule, Schema } from './field.ts'
import { formatPath, type PathStep } from './path.ts'
import { nearest } from './suggest.ts'

/** Something wrong with one field of an object that a user wrote. */
export interface FieldProblem {
  /** Such as `spec.traffic.csrf.additionalOrigins[2]`; empty for the whole value. */
  readonly path: string
  /** Completes "this field …"; stable, so that scripts and tests may match on it. */
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
  const parsed = compile(schema.node).safeParse(input)
  const structural = parsed.success ? [] : parsed.error.issues.flatMap(toProblems(schema.node))
  const broken = new Set(structural.flatMap((problem) => ancestors(problem.steps)))
  const ruled: Located[] = []
  judge(schema.node, input, [], broken, ruled)
  const located = [...structural, ...ruled]
  if (located.length === 0 && parsed.success) return succeed(parsed.data as T)
  const problems = located.map(({ steps, message }) => ({
    path: formatPath([...at, ...steps]),
    message,
  }))
  return problems.length > 0
    ? failAll(problems)
    : fail({ path: formatPath(at), message: 'is invalid' })
}

interface Located {
  readonly steps: readonly PathStep[]
  readonly message: string
}

interface Issue {
  readonly code?: string
  readonly path: readonly PropertyKey[]
  readonly message: string
  readonly keys?: readonly string[]
}

function toProblems(root: Node): (issue: Issue) => readonly Located[] {
  return (issue) => {
    const steps = issue.path.map((step) => (typeof step === 'number' ? step : String(step)))
    if (issue.code !== 'unrecognized_keys') return [{ steps, message: issue.message }]
    const node = nodeAt(root, steps)
    return (issue.keys ?? []).map((key) => ({
      steps: [...steps, key],
      message: unknownField(key, node?.type === 'object' ? node : undefined),
    }))
  }
}

function unknownField(key: string, node: ObjectNode | undefined): string {
  const advice = node?.advice?.[key]
  if (advice !== undefined) return `unknown field; ${advice}`
  const meant = nearest(key, Object.keys(node?.fields ?? {}))
  return meant === undefined ? 'unknown field' : `unknown field; did you mean ${meant}?`
}

function nodeAt(root: Node, steps: readonly PathStep[]): Node | undefined {
  let node: Node | undefined = root
  for (const step of steps) {
    if (node === undefined) return undefined
    node = childOf(node, step)
  }
  return node
}

function childOf(node: Node, step: PathStep): Node | undefined {
  if (node.type === 'object') return node.fields[String(step)]?.schema.node
  if (node.type === 'list') return node.items
  return node.type === 'map' ? node.values : undefined
}

const keyOf = (steps: readonly PathStep[]): string => JSON.stringify(steps)

function ancestors(steps: readonly PathStep[]): readonly string[] {
  return Array.from({ length: steps.length + 1 }, (_, length) => keyOf(steps.slice(0, length)))
}

/** Applies the rules of a node and of everything below it to the raw input. */
function judge(
  node: Node,
  value: unknown,
  steps: readonly PathStep[],
  broken: ReadonlySet<string>,
  found: Located[],
): void {
  if (value === undefined || value === null) return
  if (isOfType(node, value)) judgeRules(node.rules ?? [], value, steps, broken, found)
  if (node.type === 'list') {
    if (Array.isArray(value)) judgeList(node, value, steps, broken, found)
  } else if (isPlainObject(value)) {
    for (const [name, child] of childrenOf(node, value)) {
      judge(child, value[name], [...steps, name], broken, found)
    }
  }
}

/** Rules expect a value of the node's type, even if nothing has reported that it has another one. */
function isOfType(node: Node, value: unknown): boolean {
  switch (node.type) {
    case 'text':
      return typeof value === 'string'
    case 'integer':
      return typeof value === 'number'
    case 'boolean':
      return typeof value === 'boolean'
    case 'list':
      return Array.isArray(value)
    case 'map':
    case 'object':
      return isPlainObject(value)
    default:
      return true
  }
}

function childrenOf(node: Node, value: object): readonly (readonly [string, Node])[] {
  if (node.type === 'object') {
    return Object.entries(node.fields).map(([name, property]) => [name, property.schema.node])
  }
  if (node.type !== 'map') return []
  const { values } = node
  return Object.keys(value).map((key) => [key, values])
}

function judgeRules(
  rules: readonly Rule[],
  value: unknown,
  steps: readonly PathStep[],
  broken: ReadonlySet<string>,
  found: Located[],
): void {
  if (rules.length === 0) return
  const isBroken = broken.size > 0 && broken.has(keyOf(steps))
  for (const rule of rules) {
    if (isBroken && !(rule.presence === true && isPlainObject(value))) continue
    if (obeys(rule, value)) continue
    const at = rule.at === undefined ? steps : [...steps, rule.at]
    found.push({ steps: at, message: rule.message })
  }
}

const obeys = (rule: Rule, value: unknown): boolean => rule.holds(value as never)

function judgeList(
  node: ListNode,
  value: readonly unknown[],
  steps: readonly PathStep[],
  broken: ReadonlySet<string>,
  found: Located[],
): void {
  for (const [index, item] of value.entries())
    judge(node.items, item, [...steps, index], broken, found)
  if (node.unique === undefined) return
  const seen = new Map<string, number>()
  for (const [index, item] of value.entries()) {
    const identity = identityOf(node.unique, item)
    const first = seen.get(identity)
    if (first === undefined) seen.set(identity, index)
    else {
      const what = node.unique === 'value' ? 'value' : node.unique.by.join(', ')
      found.push({ steps: [...steps, index], message: `has the same ${what} as item ${first}` })
    }
  }
}

function identityOf(unique: NonNullable<ListNode['unique']>, item: unknown): string {
  if (unique === 'value' || !isPlainObject(item)) return JSON.stringify(item) ?? ''
  return JSON.stringify(unique.by.map((field) => item[field] ?? null))
}
