/** The lines and columns of fields in manifests. */
import type { ResourceApplied } from '../../../../events/index.ts'
import type { ObjectClaim, ObserveOptions } from '../../../control/watch/observed.ts'
import type { SourceProblem } from '../../../control/watch/source-problem.ts'
import { objectKey } from '../../../ground/model/names.ts'

type PlaceOf = Parameters<NonNullable<ObserveOptions['onPlaced']>>[1]
type Written = Pick<ResourceApplied['data'], 'kind' | 'namespace' | 'name' | 'origin'>
type Place = Pick<SourceProblem, 'file' | 'line' | 'column'>

const keyOf = (key: string, file: string, line: number) => `${key} ${file}:${line}`

function originOf({ origin }: Written) {
  const { file = '', line = 1 } = origin ?? {}
  return { file, line }
}

export class FieldPlaces {
  readonly #places = new Map<string, PlaceOf>()

  add(file: string, { key, origin }: ObjectClaim, placeOf: PlaceOf): void {
    this.#places.set(keyOf(key, file, origin.line), placeOf)
  }

  /** Returns the place of a field, or of the closest one around it; if it is not known, of the object. */
  find(written: Written, path: string): Place {
    const { file, line } = originOf(written)
    const placeOf = this.#places.get(keyOf(objectKey(written), file, line))
    return placeOf === undefined ? { file, line } : { file, ...placeOf(path) }
  }

  /** Returns the places of fields; if no field is given, that of the object. */
  findAll(written: Written, paths: readonly string[]): Place[] {
    return paths.length === 0 ? [originOf(written)] : paths.map((path) => this.find(written, path))
  }
}
