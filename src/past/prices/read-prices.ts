/** Reads a price list from YAML or JSON. */

import { parseManifest } from '../../control/watch/manifest.ts'
import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { problemOf } from '../../ground/base/shape.ts'
import { type PriceList, priceList } from './price-list.ts'

/** A problem is a message that names file, line and field. */
export function readPrices(content: string | Uint8Array, file: string): Outcome<PriceList, string> {
  const parsed = parseManifest(content, file)
  if (!parsed.ok) {
    const [problem] = parsed.problems
    return fail(`${file}:${problem?.line ?? 1}: ${problem?.message ?? 'not YAML'}`)
  }
  const [list, another] = parsed.value
  if (list === undefined || another !== undefined) {
    return fail(`${file}:${another?.place.line ?? 1}: expected one document`)
  }
  const [notation] = list.problems ?? []
  const problem = notation?.message ?? problemOf(priceList, list.value)
  if (problem === undefined) return succeed(list.value as PriceList)
  const path = notation?.path ?? /^(.*?): /.exec(problem)?.[1] ?? ''
  return fail(`${file}:${list.placeOf(path).line}: ${problem}`)
}
