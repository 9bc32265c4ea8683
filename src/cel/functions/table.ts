/** Every function that is no macro. */
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

export const functions: ReadonlyMap<string, CelFunction> = new Map(tables.flatMap(Object.entries))

/** First parts of the names with a dot. */
export const namespaces: ReadonlySet<string> = new Set(
  [...functions.keys()]
    .filter((name) => name.includes('.'))
    .map((name) => name.split('.')[0] ?? ''),
)
