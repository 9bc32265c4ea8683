import { conversions } from './convert.ts'
import type { CelFunction, FunctionTable } from './define.ts'
import { encodingFunctions } from './encoding.ts'
import { mapFunctions } from './maps.ts'
import { mathFunctions } from './math.ts'
import { networkFunctions } from './network.ts'
import { stringFunctions } from './strings.ts'
import { timeFunctions } from './times.ts'

const tables: readonly FunctionTable[] = [
  conversions,
  stringFunctions,
  mathFunctions,
  timeFunctions,
  encodingFunctions,
  networkFunctions,
  mapFunctions,
]

/** All functions that are not macros. */
export const functions: ReadonlyMap<string, CelFunction> = new Map(tables.flatMap(Object.entries))

/** The parts of function names before a dot. */
export const namespaces: ReadonlySet<string> = new Set(
  [...functions.keys()]
    .filter((name) => name.includes('.'))
    .map((name) => name.split('.')[0] ?? ''),
)
