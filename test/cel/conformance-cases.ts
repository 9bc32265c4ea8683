/** The conformance cases of the CEL specification, as @bufbuild/cel-spec brings them. */
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import {
  activationOf,
  CelDuration,
  type CelResult,
  CelTimestamp,
  CelType,
  CelUint,
  type CelValue,
  compileCel,
  isCelError,
} from '../../src/engines/cel/index.ts'

/** A value as the cases write it (cel.expr.Value in JSON). */
interface WrittenValue {
  readonly [kind: string]: unknown
}

interface WrittenTest {
  readonly name?: string
  readonly expr: string
  readonly value?: WrittenValue
  readonly evalError?: unknown
  readonly bindings?: Readonly<Record<string, { readonly value?: WrittenValue }>>
  readonly checkOnly?: boolean
  readonly container?: string
  /** What the case declares. */
  readonly typeEnv?: readonly { readonly name: string; readonly function?: unknown }[]
  readonly unknown?: unknown
  readonly typedResult?: { readonly result?: WrittenValue }
}

export interface ConformanceCase {
  /** `file/section/name`. */
  readonly name: string
  readonly file: string
  readonly test: WrittenTest
}

interface WrittenSuite {
  readonly name: string
  readonly suites?: readonly WrittenSuite[]
  readonly tests?: readonly { readonly original: unknown }[]
}

function collect(suite: WrittenSuite, path: string, file: string): ConformanceCase[] {
  const own = (suite.tests ?? []).map(({ original }) => {
    const test = original as WrittenTest
    return { name: `${path}/${test.name ?? test.expr}`, file, test }
  })
  const below = (suite.suites ?? []).flatMap((child) =>
    collect(child, `${path}/${child.name}`, file),
  )
  return [...own, ...below]
}

export const conformanceCases: readonly ConformanceCase[] = (
  (tests as unknown as WrittenSuite).suites ?? []
).flatMap((suite) => collect(suite, suite.name, suite.name))

/** A value of ours; undefined for messages and others that we have no value for. */
function read(written: WrittenValue | undefined): CelValue | undefined {
  if (written === undefined) return undefined
  const [[kind, value] = ['', undefined]] = Object.entries(written)
  switch (kind) {
    case 'int64Value':
      return BigInt(value as string)
    case 'uint64Value':
      return new CelUint(BigInt(value as string))
    case 'doubleValue':
      return Number(value)
    case 'stringValue':
    case 'boolValue':
      return value as string | boolean
    case 'bytesValue':
      return Buffer.from(value as string, 'base64')
    case 'nullValue':
      return null
    case 'typeValue':
      return new CelType(value as string)
    case 'listValue':
      return readList((value as { values?: WrittenValue[] }).values ?? [])
    case 'mapValue':
      return readMap((value as { entries?: WrittenEntry[] }).entries ?? [])
    case 'objectValue':
      return readObject(value as { '@type': string; value?: string })
    default:
      return undefined
  }
}

interface WrittenEntry {
  readonly key: WrittenValue
  readonly value: WrittenValue
}

function readList(values: readonly WrittenValue[]): CelValue | undefined {
  const items = values.map(read)
  return items.includes(undefined) ? undefined : (items as CelValue[])
}

function readMap(entries: readonly WrittenEntry[]): CelValue | undefined {
  const map = new Map()
  for (const entry of entries) {
    const key = read(entry.key)
    const value = read(entry.value)
    if (key === undefined || value === undefined) return undefined
    map.set(key instanceof CelUint ? key.value : key, value)
  }
  return map
}

function readObject(object: { '@type': string; value?: string }): CelValue | undefined {
  const evaluate = (expression: string) => {
    const outcome = compileCel(expression)
    return outcome.ok ? outcome.value.evaluate(activationOf({})) : undefined
  }
  const text = JSON.stringify(object.value ?? '')
  const result = object['@type'].endsWith('.Duration')
    ? evaluate(`duration(${text})`)
    : object['@type'].endsWith('.Timestamp')
      ? evaluate(`timestamp(${text})`)
      : undefined
  return result instanceof CelDuration || result instanceof CelTimestamp ? result : undefined
}

/** A value as a text that is the same for the same values of the same types. */
export function show(value: CelResult | undefined): string {
  if (value === undefined) return 'undefined'
  if (isCelError(value)) return `error ${value.kind}: ${value.message}`
  if (typeof value === 'bigint') return `int ${value}`
  if (typeof value === 'number') return `double ${Object.is(value, -0) ? 0 : value}`
  if (value instanceof CelUint) return `uint ${value.value}`
  if (value instanceof CelType) return `type ${value.name}`
  if (value instanceof CelDuration || value instanceof CelTimestamp) return value.toString()
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return `[${value.map(show).join(', ')}]`
  if (value instanceof Map) {
    const entries = [...value].map(([key, item]) => `${show(key)}: ${show(item)}`)
    return `{${entries.sort().join(', ')}}`
  }
  return JSON.stringify(value)
}

/** Why a case fails; undefined when it passes, null when it is not about something that we have. */
export function failureOf({ test }: ConformanceCase): string | undefined | null {
  const bindings = Object.entries(test.bindings ?? {}).map(
    ([name, { value }]) => [name, read(value)] as const,
  )
  const written = test.value ?? test.typedResult?.result
  const expected = test.evalError === undefined ? (read(written) ?? undefined) : undefined
  const isUnreadable = written !== undefined && expected === undefined && !('nullValue' in written)
  if (isUnreadable || test.unknown !== undefined) return null
  if (bindings.some(([, value]) => value === undefined)) return null
  const { container } = test
  const outcome = compileCel(test.expr, container === undefined ? {} : { container })
  const wantsError = test.evalError !== undefined
  if (!outcome.ok) {
    return wantsError ? undefined : `is refused: ${outcome.problems[0]?.message}`
  }
  const result = outcome.value.evaluate(activationOf(Object.fromEntries(bindings) as never))
  // Unknown functions are reported at evaluation. The case needs such a function unless it declares
  // the function itself.
  const unknown = isCelError(result)
    ? /^unknown (?:function|method) (\w+)\(/.exec(result.message)?.[1]
    : undefined
  const isUnknown = unknown !== undefined && !test.typeEnv?.some(({ name }) => name === unknown)
  if (test.checkOnly) return isUnknown ? `has an error: ${unknown}()` : undefined
  if (wantsError) return isCelError(result) ? undefined : `gives ${show(result)}, not an error`
  const wanted = written === undefined ? true : read(written)
  return show(result) === show(wanted)
    ? undefined
    : `gives ${show(result)} instead of ${show(wanted)}`
}
