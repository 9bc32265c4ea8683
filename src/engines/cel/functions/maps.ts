/** Functions for maps and query strings, and `random`, `uuid` and `fail`. */
import { CelError, isCelError } from '../error.ts'
import { FlattenedMap } from '../flattened.ts'
import { type EvaluationFrame, spend } from '../frame.ts'
import {
  type CelKey,
  type CelMapValue,
  type CelResult,
  type CelValue,
  isMap,
  mapGet,
  mapKeys,
} from '../value.ts'
import { toText } from './convert.ts'
import { type CelFunction, type FunctionTable, fixed, wrongTypes } from './define.ts'

/** Merges maps. If several have a key, the last value wins. */
function merge(frame: EvaluationFrame, args: readonly CelValue[]): CelResult {
  if (!args.every(isMap)) return wrongTypes('merge', ...args)
  const result = new Map<CelKey, CelValue>()
  for (const map of args as readonly CelMapValue[]) {
    for (const key of mapKeys(map)) {
      const value = spend(frame, 1) ?? mapGet(map, key)
      if (isCelError(value)) return value
      if (value !== undefined) result.set(key, value)
    }
  }
  return result
}

function flatten(name: string, isRecursive: boolean): CelFunction {
  return fixed('either', 1, (_, value) =>
    isMap(value) ? new FlattenedMap(value, isRecursive) : wrongTypes(name, value),
  )
}

/** Splits a URI or path at `?` and `#`. */
function splitUri(uri: string): { head: string; query: string; fragment: string } {
  const hash = uri.indexOf('#')
  const fragment = hash < 0 ? '' : uri.slice(hash)
  const rest = hash < 0 ? uri : uri.slice(0, hash)
  const questionMark = rest.indexOf('?')
  return questionMark < 0
    ? { head: rest, query: '', fragment }
    : { head: rest.slice(0, questionMark), query: rest.slice(questionMark + 1), fragment }
}

const noParameter = new CelError('missing', 'there is no such query parameter')

/** Returns all values of a query parameter, decoded. */
function query(uri: CelValue, name: CelValue): CelResult {
  if (typeof uri !== 'string' || typeof name !== 'string') return wrongTypes('query', uri, name)
  const values = new URLSearchParams(splitUri(uri).query).getAll(name)
  return values.length === 0 ? noParameter : values
}

type Edit = (parameters: string[], name: string, pair: string) => string[]

const nameOf = (pair: string) => [...new URLSearchParams(pair).keys()][0]

/** Defines a function that edits one query parameter; all others keep their positions and encoding. */
function editQuery(name: string, edit: Edit): CelFunction {
  return fixed('method', 3, (_, uri, key, value) => {
    const text = toText(value)
    if (typeof uri !== 'string' || typeof key !== 'string') return wrongTypes(name, uri, key, value)
    if (isCelError(text)) return text
    const { head, query: old, fragment } = splitUri(uri)
    const pair = new URLSearchParams([[key, text as string]]).toString()
    const parameters = old === '' ? [] : old.split('&')
    return `${head}?${edit(parameters, key, pair).join('&')}${fragment}`
  })
}

const addQuery: Edit = (parameters, _, pair) => [...parameters, pair]

/** Replaces the first parameter with this name and removes the others with this name. */
const setQuery: Edit = (parameters, name, pair) => {
  const first = parameters.findIndex((parameter) => nameOf(parameter) === name)
  if (first < 0) return [...parameters, pair]
  return parameters.flatMap((parameter, i) => {
    if (i === first) return [pair]
    return nameOf(parameter) === name ? [] : [parameter]
  })
}

export const mapFunctions: FunctionTable = {
  merge: { style: 'either', min: 1, max: 16, applyAll: merge },
  flatten: flatten('flatten', false),
  flattenRecursive: flatten('flattenRecursive', true),
  query: fixed('method', 2, (_, uri, name) => query(uri, name)),
  addQuery: editQuery('addQuery', addQuery),
  setQuery: editQuery('setQuery', setQuery),
  random: fixed('function', 0, () => Math.random()),
  uuid: fixed('function', 0, () => crypto.randomUUID()),
  fail: {
    style: 'function',
    min: 0,
    max: 1,
    apply: (_, message: CelValue | undefined) =>
      new CelError('fail', typeof message === 'string' ? message : 'the expression failed'),
  },
}
