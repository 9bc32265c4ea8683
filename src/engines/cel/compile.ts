/** Compiles a tree to closures, which take the frame and return a value or an error. None of them throws. */
import { fieldStep, readIndex, variableFieldStep, viewFieldStep } from './access.ts'
import { callStep, methodStep } from './calls.ts'
import { type CompileContext, findLocal, type VariableScope } from './context.ts'
import { isEqual, isItem, isKey } from './equality.ts'
import { CelError, isCelError, noOverload } from './error.ts'
import { type CompilePart, textMethodStep } from './fast-paths.ts'
import type { Step } from './frame.ts'
import { typeNames } from './functions/convert.ts'
import { ifStep, logicStep, notStep } from './logic.ts'
import { macroStep } from './macros.ts'
import {
  add,
  divide,
  isLess,
  isLessOrEqual,
  multiply,
  negate,
  type Operator,
  remainder,
  subtract,
} from './operators.ts'
import { unknownName } from './problem.ts'
import type { BinaryOperator, Expression } from './syntax.ts'
import { CelMap, CelType, type CelValue, isList, isMap, toKey, typeName } from './value.ts'
import { variableStep } from './variables.ts'

export function compileStep(
  expression: Expression,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const step = (part: Expression) => context.step(part, scope)
  switch (expression.op) {
    case 'literal': {
      const { value } = expression
      return () => value
    }
    case 'name':
      return nameStep(expression, scope, context)
    case 'field':
    case 'index':
      return accessStep(expression, scope, context)
    case 'call':
      return macroStep(expression, scope, context) ?? callStep(expression, scope, context)
    case 'method':
      return (
        macroStep(expression, scope, context) ??
        textMethodStep(expression, step) ??
        methodStep(expression, scope, context)
      )
    case 'list':
      return constantListStep(expression.items) ?? listStep(expression.items.map(step))
    case 'map':
      return mapLiteralStep(expression.entries.map(([key, value]) => [step(key), step(value)]))
    case 'if':
      return ifStep(
        step(expression.condition),
        step(expression.whenTrue),
        step(expression.whenFalse),
      )
    case 'and':
    case 'or':
      return logicStep(expression.op === 'and' ? '&&' : '||', expression.operands.map(step))
    case 'not':
      return notStep(step(expression.operand))
    case 'negate':
      return unaryStep(step(expression.operand))
    case 'binary':
      return binaryStep(expression, step)
  }
}

type Name = Expression & { readonly op: 'name' }

function nameStep(
  expression: Name,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const { name } = expression
  const local = expression.isGlobal === true ? undefined : findLocal(scope, name)
  if (local !== undefined) {
    const { slot } = local
    return (frame) => frame.locals[slot] ?? null
  }
  const isDeclared = context.variables?.has(name) === true
  if (!isDeclared && typeNames.has(name)) {
    const type = new CelType(name)
    return () => type
  }
  if (!isDeclared && context.variables !== undefined) {
    return context.refuse(expression, unknownName('variable', name, context.variables.keys()))
  }
  const step = variableStep(name, isDeclared)
  const isPlain = context.scopes.length === 1 || expression.isGlobal === true
  return isPlain ? step : qualifiedStep([name], step, context)
}

const protobufTypes: ReadonlySet<string> = new Set(['Timestamp', 'Duration'])

/** Returns the step for a type whose name has dots, such as google.protobuf.Timestamp. */
function typeOfPath({ of, name }: Expression & { op: 'field' }, context: CompileContext) {
  const isProtobuf =
    of.op === 'field' &&
    of.name === 'protobuf' &&
    of.of.op === 'name' &&
    of.of.name === 'google' &&
    context.variables?.has('google') !== true
  const isNet = of.op === 'name' && of.name === 'net' && context.variables?.has('net') !== true
  const path =
    isProtobuf && protobufTypes.has(name)
      ? `google.protobuf.${name}`
      : isNet && (name === 'IP' || name === 'CIDR')
        ? `net.${name}`
        : undefined
  if (path === undefined) return undefined
  const type = new CelType(path)
  return () => type
}

type Access = Expression & { readonly op: 'field' | 'index' }

function accessStep(
  expression: Access,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const { of } = expression
  const name = expression.op === 'field' ? expression.name : constantOf(expression.key)
  const type = expression.op === 'field' ? typeOfPath(expression, context) : undefined
  if (type !== undefined) return type
  const step = (part: Expression) => context.step(part, scope)
  const path = context.variables === undefined ? namePath(expression) : undefined
  if (path !== undefined && findLocal(scope, path[0]) === undefined) {
    return qualifiedStep(path, fieldStep(step(of), path.at(-1) ?? ''), context)
  }
  if (expression.op === 'index' && typeof name !== 'string') {
    return indexStep(step(of), step(expression.key))
  }
  const field = String(name)
  const problem = context.fieldProblem(of, field, scope)
  if (problem !== undefined) return context.refuse(expression, problem)
  return shortStep(of, field, scope, context, fieldStep(step(of), field))
}

/** Reads a field of a declared variable, or of a field of one, in one step. `otherwise` reads all others. */
function shortStep(
  of: Expression,
  field: string,
  scope: VariableScope | undefined,
  context: CompileContext,
  otherwise: Step,
): Step {
  const isDeclared = (of: Expression): of is Name =>
    of.op === 'name' &&
    context.scopes.length === 1 &&
    context.variables?.has(of.name) === true &&
    findLocal(scope, of.name) === undefined
  if (isDeclared(of)) return variableFieldStep(of.name, field, otherwise)
  return of.op === 'field' && isDeclared(of.of)
    ? viewFieldStep(of.of.name, of.name, field, otherwise)
    : otherwise
}

/** Returns the names in `a.b.c`; undefined for any other expression. */
function namePath(expression: Expression): [string, ...string[]] | undefined {
  if (expression.op === 'name') return [expression.name]
  const path = expression.op === 'field' ? namePath(expression.of) : undefined
  if (path !== undefined && expression.op === 'field') path.push(expression.name)
  return path
}

/**
 * If no variables are declared, names of variables may have dots, and the longest name that is set wins.
 * `ofShorter` reads `path` as a field of the variable with the next shorter name.
 */
function qualifiedStep(path: readonly string[], ofShorter: Step, { scopes }: CompileContext): Step {
  const names = scopes.map((scope) => `${scope}${path.join('.')}`)
  return (frame) => {
    for (const name of names) {
      const value = frame.activation.lookup(name)
      if (value !== undefined) return value
    }
    return ofShorter(frame)
  }
}

function indexStep(container: Step, key: Step): Step {
  return (frame) => {
    const value = container(frame)
    if (value instanceof CelError) return value
    const at = key(frame)
    return at instanceof CelError ? at : readIndex(value, at)
  }
}

/** A list of constants is created once, because no function changes a list. */
function constantListStep(items: readonly Expression[]): Step | undefined {
  const values = items.map(constantOf)
  if (values.includes(undefined)) return undefined
  return () => values as readonly CelValue[]
}

function listStep(items: readonly Step[]): Step {
  return (frame) => {
    const list: CelValue[] = []
    for (const item of items) {
      const value = item(frame)
      if (isCelError(value)) return value
      list.push(value)
    }
    return list
  }
}

const duplicateKey = new CelError('value', 'a map has the same key twice')

function mapLiteralStep(entries: readonly (readonly [Step, Step])[]): Step {
  return (frame) => {
    const map = new CelMap()
    for (const [keyStep, valueStep] of entries) {
      const at = keyStep(frame)
      if (isCelError(at)) return at
      const key = typeof at === 'number' ? undefined : toKey(at)
      if (key === undefined) return noOverload('a key of a map', typeName(at))
      if (map.has(key)) return duplicateKey
      const value = valueStep(frame)
      if (isCelError(value)) return value
      map.put(at, key, value)
    }
    return map
  }
}

function unaryStep(operand: Step): Step {
  return (frame) => {
    const value = operand(frame)
    return value instanceof CelError ? value : negate(value)
  }
}

const contains: Operator = (item, container, frame) => {
  if (isList(container)) return isItem(item, container, frame)
  const isPossible = isMap(container) && (toKey(item) !== undefined || typeof item === 'number')
  return isPossible ? isKey(item, container) : noOverload('in', typeName(item), typeName(container))
}

const negated =
  (operator: Operator): Operator =>
  (a, b, frame) => {
    const value = operator(a, b, frame)
    return typeof value === 'boolean' ? !value : value
  }

const operators: Readonly<Record<BinaryOperator, Operator>> = {
  '==': (a, b, frame) => isEqual(a, b, frame),
  '!=': negated((a, b, frame) => isEqual(a, b, frame)),
  '<': isLess,
  '<=': isLessOrEqual,
  '>': (a, b, frame) => isLess(b, a, frame),
  '>=': (a, b, frame) => isLessOrEqual(b, a, frame),
  in: contains,
  '+': add,
  '-': subtract,
  '*': multiply,
  '/': divide,
  '%': remainder,
}

function binaryStep(expression: Expression & { op: 'binary' }, step: CompilePart): Step {
  const left = step(expression.left)
  const right = step(expression.right)
  const { operator: name } = expression
  if (name === '==' || name === '!=') {
    const isRight = isConstant(expression.right)
    const constant = constantOf(isRight ? expression.right : expression.left)
    const other = isRight ? left : right
    if (typeof constant === 'string') return equalsTextStep(other, constant, name === '==')
    if (typeof constant === 'bigint') return equalsIntStep(other, constant, name === '==')
  }
  const operator = operators[name]
  return (frame) => {
    const a = left(frame)
    if (a instanceof CelError) return a
    const b = right(frame)
    return b instanceof CelError ? b : operator(a, b, frame)
  }
}

function constantOf(expression: Expression): CelValue | undefined {
  return expression.op === 'literal' ? expression.value : undefined
}

function isConstant(expression: Expression): boolean {
  const type = typeof constantOf(expression)
  return type === 'string' || type === 'bigint'
}

/** Compares with a constant string, the most common comparison. */
function equalsTextStep(other: Step, constant: string, ifSame: boolean): Step {
  return (frame) => {
    const value = other(frame)
    if (typeof value === 'string') return (value === constant) === ifSame
    return value instanceof CelError ? value : !ifSame
  }
}

/** Compares with a constant int, such as a status code. */
function equalsIntStep(other: Step, constant: bigint, ifSame: boolean): Step {
  return (frame) => {
    const value = other(frame)
    if (typeof value === 'bigint') return (value === constant) === ifSame
    if (value instanceof CelError) return value
    const same = isEqual(value, constant, frame)
    return typeof same === 'boolean' ? same === ifSame : same
  }
}
